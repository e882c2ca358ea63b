"""Stored answers of lesson 08: wrong ones with their hints, and right ones written differently."""

import contextvars
import functools
import math
from collections import Counter
from itertools import chain, pairwise

import numpy
import torch
from torch import nn

from attention.tokens_and_positions import PairIndex, split_words
from autograder.checking.toolbox.registry import again, alternative, careless, mistake


def _totals(words, counts, pairs_of=pairwise):
    totals = Counter()
    for word, count in zip(words, counts, strict=True):
        for pair in pairs_of(word):
            totals[pair] += count
    return totals


def _ranked(totals):
    return sorted(totals.items(), key=lambda item: (-item[1], item[0]))


@mistake(
    "count_pairs", hint="Each word is counted once. A word that occurs 5 times counts 5 times."
)
def forgets_the_counts(words, counts):
    return _ranked(_totals(words, [1] * len(words)))


@mistake(
    "count_pairs",
    hint="In [7, 7, 7] the second 7 is part of two pairs: with the first and with the third. Here "
    "a pair begins only where the one before has ended.",
)
def steps_over_two(words, counts):
    return _ranked(_totals(words, counts, lambda word: zip(word[::2], word[1::2], strict=False)))


@mistake(
    "count_pairs",
    hint="A pair is counted once per word. In [7, 7, 7] it stands twice: count every place.",
)
def counts_a_pair_once_per_word(words, counts):
    return _ranked(_totals(words, counts, lambda word: set(pairwise(word))))


@mistake(
    "count_pairs",
    hint="There are pairs whose halves stand in different words. A pair lies within one word.",
)
def counts_across_words(words, counts):
    return _ranked(Counter(pairwise(chain.from_iterable(w * n for w, n in zip(words, counts)))))  # noqa: B905


@mistake(
    "count_pairs",
    hint="(3, 9) and (9, 3) are counted as one. The order of the two tokens matters.",
)
def forgets_which_is_left(words, counts):
    return _ranked(
        _totals(words, counts, lambda word: [tuple(sorted(pair)) for pair in pairwise(word)])
    )


@mistake(
    "count_pairs",
    hint="Equally frequent pairs come in the order in which they were met, that is by chance: "
    "shuffled words would give another tokeniser. Put the smaller pair first.",
)
def leaves_ties_to_chance(words, counts):
    return _totals(words, counts).most_common()


@mistake(
    "count_pairs",
    hint="Sorting (count, pair) backwards turns the pairs around as well: on a tie the larger pair "
    "comes first. Only the count should run downwards.",
)
def puts_the_larger_pair_first(words, counts):
    return sorted(_totals(words, counts).items(), key=lambda item: item[::-1], reverse=True)


@mistake("count_pairs", hint="The rarest pair comes first. The most frequent one is merged first.")
def puts_the_rarest_first(words, counts):
    return sorted(_totals(words, counts).items(), key=lambda item: item[::-1])


@mistake("count_pairs", hint="The result is sorted by pair. Sort by count, then by pair.")
def sorts_by_pair(words, counts):
    return sorted(_totals(words, counts).items())


@mistake(
    "count_pairs",
    hint="This is a Counter, or a dict. Return a list of its items, in the right order.",
)
def returns_the_counter(words, counts):
    return _totals(words, counts)


@alternative("count_pairs")
def sorts_twice(words, counts):
    totals = {}
    for word, count in zip(words, counts, strict=True):
        for i in range(1, len(word)):
            totals[word[i - 1], word[i]] = totals.get((word[i - 1], word[i]), 0) + count
    by_pair = sorted(totals.items())
    return sorted(by_pair, key=lambda item: item[1], reverse=True)


@alternative("count_pairs")
def repeats_the_words(words, counts):
    found = [
        p for word, n in zip(words, counts, strict=True) for _ in range(n) for p in pairwise(word)
    ]
    return [(p, n) for n, p in sorted((-found.count(p), p) for p in set(found)) for n in [-n]]


def _merged(ids, pair, new_id):
    return [ord(s) for s in "".join(map(chr, ids)).replace("".join(map(chr, pair)), chr(new_id))]


@mistake(
    "merge_pair",
    hint="After a merge the search goes on at the very next token, which has just been used up. "
    "Go on after both.",
)
def does_not_skip_the_second(ids, pair, new_id):
    merged = []
    for i, token in enumerate(ids):
        merged.append(new_id if tuple(ids[i : i + 2]) == pair else token)
    return merged


@mistake(
    "merge_pair",
    hint="The third 7 of [7, 7, 7] is lost or merged with a 7 that is used up already. Both tokens "
    "of a merge are gone, and every other token stays.",
)
def merges_overlapping_pairs(ids, pair, new_id):
    starts = [i for i in range(len(ids) - 1) if (ids[i], ids[i + 1]) == pair]
    used = {i for start in starts for i in (start, start + 1)}
    return [
        new_id if i in starts else ids[i] for i in range(len(ids)) if i in starts or i not in used
    ]


@mistake("merge_pair", hint="Only the first place is merged. The pair may stand in several.")
def merges_the_first_place_only(ids, pair, new_id):
    for i in range(len(ids) - 1):
        if (ids[i], ids[i + 1]) == pair:
            return ids[:i] + [new_id] + ids[i + 2 :]
    return list(ids)


@mistake(
    "merge_pair",
    hint="In [7, 7, 7] the last two are merged, [7, 300]. From left to right it is [300, 7].",
)
def merges_from_the_right(ids, pair, new_id):
    found, rest = [], list(ids)
    while rest:
        last = rest.pop()
        if rest and (rest[-1], last) == tuple(pair):
            rest.pop()
            last = new_id
        found.insert(0, last)
    return found


@mistake(
    "break_merge_pair",
    hint="The pair stands nowhere in the list, so nothing is merged, from either side.",
    where=lambda ids, pair, new_id: tuple(pair) not in set(zip(ids, ids[1:], strict=False)),
)
def nothing_to_merge():
    return [7, 8, 9], (9, 7), 300


@mistake(
    "break_merge_pair",
    hint="The two ids of the pair differ, so two places where it stands never share a token.",
    where=lambda ids, pair, new_id: pair[0] != pair[1],
)
def a_pair_of_two_kinds():
    return [7, 8, 7, 8], (7, 8), 300


@mistake(
    "break_merge_pair",
    hint="Both sides pair off the same tokens, because each run of them has an even length.",
    where=lambda ids, pair, new_id: (
        pair[0] == pair[1]
        and "".join("x" if one == pair[0] else " " for one in ids).replace("xx", "").count("x") == 0
    ),
)
def two_of_them():
    return [7, 7, 8], (7, 7), 300


@alternative("break_merge_pair")
def three_in_the_middle():
    return [1, 5, 5, 5, 2], (5, 5), 256


@alternative("break_merge_pair")
def five_with_a_list():
    return [0, 0, 0, 0, 0], [0, 0], 999


@mistake(
    "merge_pair",
    hint="The last token is lost when it is not part of a merge: the loop ends before it.",
)
def loses_the_last_token(ids, pair, new_id):
    merged, i = [], 0
    while i < len(ids) - 1:
        hit = (ids[i], ids[i + 1]) == pair
        merged.append(new_id if hit else ids[i])
        i += 2 if hit else 1
    return merged


@mistake(
    "merge_pair",
    hint="ids[i + 1] reads past the end when i is the last place. First look whether there is a "
    "next token.",
)
def reads_behind_the_end(ids, pair, new_id):
    merged, i = [], 0
    while i < len(ids):
        hit = ids[i] == pair[0] and ids[i + 1] == pair[1]
        merged.append(new_id if hit else ids[i])
        i += 2 if hit else 1
    return merged


@mistake("merge_pair", hint="(8, 7) is merged like (7, 8). The left token has to be on the left.")
def merges_both_orders(ids, pair, new_id):
    merged, i = [], 0
    while i < len(ids):
        hit = tuple(ids[i : i + 2]) in (pair, pair[::-1])
        merged.append(new_id if hit else ids[i])
        i += 2 if hit else 1
    return merged


@mistake(
    "merge_pair",
    hint="The values are right, but the caller's list has changed: ids[i : i + 2] = … writes into "
    "it. Work on a copy.",
)
def merges_in_place(ids, pair, new_id):
    ids[:] = _merged(ids, pair, new_id)
    return ids


@mistake(
    "merge_pair",
    hint="The list gets shorter while a for loop walks over its first length, and the loop runs "
    "off its end. Build a new list with a while loop.",
)
def shortens_the_list_it_walks_over(ids, pair, new_id):
    ids = list(ids)
    for i in range(len(ids) - 1):
        if (ids[i], ids[i + 1]) == pair:
            ids[i : i + 2] = [new_id]
    return ids


@mistake(
    "merge_pair",
    hint="The step is always 1: after a merge the search goes on at the token that has just been "
    "used up. And the last token is lost, because it has no neighbour.",
)
def steps_by_one_and_loses_the_last(ids, pair, new_id):
    return [new_id if p == pair else p[0] for p in pairwise(ids)]


@alternative("merge_pair")
def cuts_a_copy(ids, pair, new_id):
    ids = list(ids)
    for i in range(len(ids)):
        if (*ids[i : i + 2],) == pair:
            ids[i : i + 2] = [new_id]
    return ids


@alternative("merge_pair")
def looks_back(ids, pair, new_id):
    merged, free = [], False
    for token in ids:
        if free and (merged[-1], token) == pair:
            merged[-1], free = new_id, False
        else:
            merged.append(token)
            free = True
    return merged


def _train(words, counts, n_merges, best=lambda totals: _ranked(totals)[0][0], merge=_merged):
    words, merges = [list(word) for word in words], []
    while len(merges) < n_merges and (totals := _totals(words, counts)):
        merges.append(best(totals))
        words = [merge(word, merges[-1], 255 + len(merges)) for word in words]
    return merges


@mistake(
    "train_bpe",
    hint="The pairs are those of the beginning, in their first order. After each merge some pairs "
    "are gone and new ones have arisen: take the words out of the count, merge, count them again.",
    earns=("the first merge",),
)
def never_updates_the_counts(words, counts, n_merges):
    return [pair for pair, _ in _ranked(_totals(words, counts))][:n_merges]


FOR_EVER = (
    "The same pair is merged again and again: when the next one is chosen, its count has not "
    "fallen. For each word that holds the pair: remove, merge, add, in this order."
)


@mistake("train_bpe", hint=FOR_EVER)
def merges_the_same_pair_for_ever(words, counts, n_merges):
    return [PairIndex(words, counts).most_frequent()] * n_merges


@mistake("train_bpe", hint=FOR_EVER)
def removes_after_the_word_has_changed(words, counts, n_merges):
    index, merges = PairIndex(words, counts), []
    while len(merges) < n_merges and (pair := index.most_frequent()):
        for place in index.where(pair):
            index.words[place] = _merged(index.words[place], pair, 256 + len(merges))
            index.remove(place)
            index.add(place)
        merges.append(pair)
    return merges


def _indexed(words, counts, n_merges, remove=True, add=True, numbered=256):
    index, merges = PairIndex(words, counts), []
    while len(merges) < n_merges and (pair := index.most_frequent()):
        for place in index.where(pair):
            if remove:
                index.remove(place)
            index.words[place] = _merged(index.words[place], pair, numbered + len(merges))
            if add:
                index.add(place)
        merges.append(pair)
    return merges


@mistake(
    "train_bpe",
    hint="New pairs are counted, but the old ones of the same words still are as well. Call "
    "index.remove before the word changes.",
)
def does_not_remove_the_old_pairs(words, counts, n_merges):
    return _indexed(words, counts, n_merges, remove=False)


@mistake(
    "train_bpe",
    hint="The old pairs are taken out, but those of the merged word never come in, so no merge "
    "builds on another. Call index.add after the word has changed.",
    earns=("the first merge",),
)
def does_not_add_the_new_pairs(words, counts, n_merges):
    return _indexed(words, counts, n_merges, add=False)


@mistake(
    "train_bpe",
    hint="The new ids begin at 257. The first merge makes 256: append the pair to the merges after "
    "its id has been used, not before.",
    earns=("the first merge", "when to stop"),
)
def numbers_from_257(words, counts, n_merges):
    return _indexed(words, counts, n_merges, numbered=257)


@mistake(
    "train_bpe",
    hint="On a tie it takes the pair that it met first, that is by chance: the same words in "
    "another order give another tokeniser. Take the smallest pair.",
    earns=("the merges after it", "when to stop"),
)
def breaks_ties_by_chance(words, counts, n_merges):
    return _train(words, counts, n_merges, best=lambda totals: max(totals, key=totals.get))


@mistake("train_bpe", hint="On a tie it takes the largest pair. Take the smallest.")
def takes_the_largest_on_a_tie(words, counts, n_merges):
    largest = lambda totals: max(totals, key=lambda pair: (totals[pair], pair))  # noqa: E731
    return _train(words, counts, n_merges, best=largest)


@mistake(
    "train_bpe",
    hint="A word that occurs 4 times counts as one. Use the counts.",
    earns=("the merges after it", "when to stop"),
)
def trains_without_the_counts(words, counts, n_merges):
    return _train(words, [1] * len(words), n_merges)


@mistake(
    "train_bpe",
    hint="Only one place in each word is merged. The pair may stand there several times.",
)
def merges_once_per_word(words, counts, n_merges):
    return _train(words, counts, n_merges, merge=merges_the_first_place_only)


@mistake(
    "train_bpe",
    hint="When no pair is left there is nothing to take the largest of. Stop early, with fewer "
    "merges.",
)
def does_not_stop(words, counts, n_merges):
    merges = _train(words, counts, n_merges)
    return merges if len(merges) == n_merges else [max([])]


@mistake(
    "train_bpe",
    hint="When no pair is left, most_frequent() returns None, which is no merge. Stop then.",
    earns=("the first merge", "the merges after it"),
)
def appends_none(words, counts, n_merges):
    merges = _train(words, counts, n_merges)
    return merges + [None] * (n_merges - len(merges))


@mistake(
    "train_bpe",
    hint="It does not stop at n_merges but goes on until no pair is left.",
    earns=("the first merge", "the merges after it"),
)
def goes_on_to_the_end(words, counts, n_merges):
    return _train(words, counts, 10**6)


@mistake(
    "train_bpe",
    hint="Not all merges are there: the last one is missing.",
    earns=("the first merge", "the merges after it"),
)
def stops_one_early(words, counts, n_merges):
    return _train(words, counts, n_merges - 1)


@alternative("train_bpe")
def counts_everything_anew(words, counts, n_merges):
    return _train(words, counts, n_merges)


@alternative("train_bpe")
def with_new_words_from_the_index(words, counts, n_merges):
    return _indexed(words, counts, n_merges)


def _encode(text, merges, choose=min, pieces=split_words, first=256, bytes_of=str.encode):
    """Right by default; ``choose`` picks the next (rank, place) among those in a word."""
    ranks, ids = {pair: rank for rank, pair in enumerate(merges)}, []
    for piece in pieces(text):
        word = list(bytes_of(piece))
        while found := [(ranks[p], i) for i, p in enumerate(pairwise(word)) if p in ranks]:
            rank, i = choose(found)
            word[i : i + 2] = [first + rank]
        ids += word
    return ids


@mistake(
    "bpe_encode",
    hint="Merges are applied from left to right, whichever is met first. The pair that was learned "
    "first has to go first, wherever it stands.",
    earns=("any text",),
)
def merges_the_leftmost_pair(text, merges):
    return _encode(text, merges, choose=lambda found: min(found, key=lambda item: item[1]))


@mistake(
    "bpe_encode",
    hint="The pair that was learned last is merged first. It is the other way round: the lowest "
    "rank goes first.",
)
def merges_the_last_learned_first(text, merges):
    return _encode(text, merges, choose=max)


@mistake(
    "bpe_encode",
    hint="The longest token that fits is taken, from left to right. That is another algorithm "
    "(WordPiece); BPE repeats the merges in the order in which they were learned.",
)
def takes_the_longest_token(text, merges):
    tokens = [bytes([byte]) for byte in range(256)]
    for left, right in merges:
        tokens.append(tokens[left] + tokens[right])
    known, ids = {token: i for i, token in enumerate(tokens)}, []
    for piece in split_words(text):
        rest = piece.encode()
        while rest:
            size = next(n for n in range(len(rest), 0, -1) if rest[:n] in known)
            ids.append(known[rest[:size]])
            rest = rest[size:]
    return ids


@mistake(
    "bpe_encode",
    hint="Each word is merged once only. Merge until none of its pairs is among the merges.",
)
def merges_once(text, merges):
    ranks, ids = {pair: rank for rank, pair in enumerate(merges)}, []
    for piece in split_words(text):
        word = list(piece.encode())
        found = [(ranks[p], i) for i, p in enumerate(pairwise(word)) if p in ranks]
        if found:
            rank, i = min(found)
            word[i : i + 2] = [256 + rank]
        ids += word
    return ids


@mistake("bpe_encode", hint="A merge is applied to one place of a word only. It may fit several.")
def applies_each_merge_once(text, merges):
    ids = []
    for piece in split_words(text):
        word = list(piece.encode())
        for rank, pair in enumerate(merges):
            word = merges_the_first_place_only(word, pair, 256 + rank)
        ids += word
    return ids


@mistake(
    "bpe_encode",
    hint="The id of a merge is its rank plus 256: below that are the bytes.",
    earns=("any text",),
)
def forgets_the_256(text, merges):
    return [i - 1000 if i >= 1000 else i for i in _encode(text, merges, first=1000)]


@mistake(
    "bpe_encode",
    hint="A merge crosses from one word into the next. Merge each word of split_words by itself.",
    earns=("one word of letters",),
)
def merges_across_words(text, merges):
    return _encode(text, merges, pieces=lambda text: [text])


@mistake(
    "bpe_encode",
    hint="The ids are numbers of characters, ord(…). The first 256 ids are bytes: encode the word "
    "as UTF-8.",
    earns=("one word of letters",),
)
def takes_characters_for_bytes(text, merges):
    return _encode(text, merges, bytes_of=lambda piece: map(ord, piece))


@mistake(
    "bpe_encode",
    hint="The result is one list for each word. Join them into a single list of ids.",
    earns=("one word of letters",),
)
def keeps_the_words_apart(text, merges):
    return [_encode(piece, merges) for piece in split_words(text)]


@alternative("bpe_encode")
def merge_after_merge(text, merges):
    ids = []
    for piece in split_words(text):
        word = list(piece.encode())
        for rank, pair in enumerate(merges):
            word = _merged(word, pair, 256 + rank)
        ids.extend(word)
    return ids


@alternative("bpe_encode")
def all_places_of_the_best_pair(text, merges):
    ids, worst = [], len(merges)
    for word in map(list, map(str.encode, split_words(text))):
        while len(word) > 1:
            rank = min(merges.index(p) if p in merges else worst for p in pairwise(word))
            if rank == worst:
                break
            word = _merged(word, merges[rank], 256 + rank)
        ids = ids + word
    return ids


def _tokens(merges):
    tokens = [bytes([byte]) for byte in range(256)]
    for left, right in merges:
        tokens.append(tokens[left] + tokens[right])
    return tokens


@mistake(
    "bpe_decode",
    hint="Each token is read by itself. A character of several bytes may begin in one token and "
    "end in the next: join all bytes first.",
)
def reads_token_by_token(ids, merges):
    tokens = _tokens(merges)
    return "".join(tokens[i].decode(errors="replace") for i in ids)


@mistake(
    "bpe_decode",
    hint="Bytes that are not UTF-8 raise a UnicodeDecodeError. A model may stop within a "
    'character: tell decode what to do with errors, for instance "replace".',
)
def stumbles_over_broken_bytes(ids, merges):
    return b"".join(_tokens(merges)[i] for i in ids).decode()


@mistake(
    "bpe_decode",
    hint='Broken bytes vanish silently (errors="ignore"). Let them be seen, as U+FFFD.',
)
def swallows_broken_bytes(ids, merges):
    return b"".join(_tokens(merges)[i] for i in ids).decode(errors="ignore")


@mistake(
    "bpe_decode",
    hint="Every byte becomes a character (chr, or latin-1). In UTF-8 a character may take several.",
)
def takes_bytes_for_characters(ids, merges):
    return b"".join(_tokens(merges)[i] for i in ids).decode("latin-1")


@mistake("bpe_decode", hint="The two halves of a merge are swapped: left first, then right.")
def swaps_the_halves(ids, merges):
    return decode_with(ids, [(right, left) for left, right in merges])


def decode_with(ids, merges, joint=b""):
    return joint.join(_tokens(merges)[i] for i in ids).decode(errors="replace")


@mistake(
    "bpe_decode",
    hint="There are spaces between the tokens. The spaces of the text are in the tokens already.",
)
def puts_spaces_between(ids, merges):
    return decode_with(ids, merges, joint=b" ")


@mistake(
    "bpe_decode",
    hint="Ids from 256 are looked up as bytes. Each stands for a merge, whose halves may be merges "
    "in turn: build a table of the bytes of every token first.",
)
def knows_bytes_only(ids, merges):
    return bytes(ids).decode(errors="replace")


@mistake("bpe_decode", hint="A merge is undone once only. Its halves may be merges in their turn.")
def undoes_one_level(ids, merges):
    flat = chain.from_iterable(merges[i - 256] if i > 255 else (i,) for i in ids)
    return bytes(i % 256 for i in flat).decode(errors="replace")


@mistake("bpe_decode", hint="These are the bytes. Read them as UTF-8, to get a str.")
def returns_bytes(ids, merges):
    return b"".join(_tokens(merges)[i] for i in ids)


@alternative("bpe_decode")
def unfolds_recursively(ids, merges):
    def unfold(i):
        return [i] if i < 256 else [byte for half in merges[i - 256] for byte in unfold(half)]

    return bytes(byte for i in ids for byte in unfold(i)).decode("utf-8", "replace")


@alternative("bpe_decode")
def unfolds_with_a_stack(ids, merges):
    stack, found = list(reversed(ids)), bytearray()
    while stack:
        top = stack.pop()
        if top < 256:
            found.append(top)
        else:
            left, right = merges[top - 256]
            stack += [right, left]
    return str(found, "utf-8", "replace")


@mistake("embed", hint="The rows are not scaled. Multiply them by √d_model.")
def forgets_the_root(ids, table):
    return table[ids]


@mistake("embed", hint="The rows are divided by √d_model. Multiply: the rows should grow.")
def divides(ids, table):
    return table[ids] / math.sqrt(table.shape[1])


@mistake("embed", hint="The factor is d_model. Take its root.")
def takes_no_root(ids, table):
    return table[ids] * table.shape[1]


@mistake(
    "embed",
    hint="The factor is the root of the size of the vocabulary. d_model is the table's other axis.",
)
def takes_the_root_of_the_vocabulary(ids, table):
    return table[ids] * math.sqrt(len(table))


@mistake("embed", hint="√d_model is added. Multiply by it.")
def adds_the_root(ids, table):
    return table[ids] + math.sqrt(table.shape[1])


@mistake("embed", hint="Columns of the table are looked up. A token has a row.")
def looks_up_columns(ids, table):
    return table.T[ids] * math.sqrt(table.shape[1])


@mistake(
    "embed",
    hint="The values are right, but no gradient reaches the table, so it would never be learned. "
    "Something was detached, or rebuilt from plain numbers.",
)
def detaches_the_table(ids, table):
    return table.detach()[ids] * math.sqrt(table.shape[1])


@mistake("embed", hint="The caller's table was multiplied in place. It would grow at every call.")
def scales_in_place(ids, table):
    table *= math.sqrt(table.shape[1])
    return table[ids]


@alternative("embed")
def with_functional_embedding(ids, table):
    return nn.functional.embedding(ids, table).mul(table.size(-1) ** 0.5)


@alternative("embed")
def with_one_hot_vectors(ids, table):
    one_hot = (ids[..., None] == torch.arange(len(table), device=ids.device)).to(table.dtype)
    return one_hot @ (table * math.sqrt(table.shape[1]))


@careless("embed")
def fills_rows_on_the_cpu(ids, table):
    rows = torch.zeros(*ids.shape, table.shape[1])
    for b, sequence in enumerate(ids.tolist()):
        for t, i in enumerate(sequence):
            rows[b, t] = table[i] * math.sqrt(table.shape[1])
    return rows


@careless("embed")
def with_one_hot_vectors_on_the_cpu(ids, table):
    one_hot = torch.eye(len(table), dtype=table.dtype)[ids]
    return one_hot @ table * math.sqrt(table.shape[1])


@careless("embed")
def embeds_in_float32(ids, table):
    return table.float()[ids] * math.sqrt(table.shape[1])


def _counted(positions, *bounds):
    """torch.arange, of the precision and on the device of the positions."""
    return torch.arange(*bounds, dtype=positions.dtype, device=positions.device)


def _angles(positions, d, exponents=None, base=10000.0):
    exponents = _counted(positions, 0, d, 2) / d if exponents is None else exponents
    return positions[:, None] / base ** exponents.to(_SPEEDS.get() or exponents.dtype)


# The dtype in which speeds are computed, where that is not theirs.
_SPEEDS = contextvars.ContextVar("_SPEEDS", default=None)


def _interleaved(first, second):
    return torch.stack([first, second], dim=-1).flatten(-2)


def _sinusoids(angles):
    return _interleaved(angles.sin(), angles.cos())


def _refuses_odd_sizes(target):
    """With the lines that are given."""

    @functools.wraps(target)
    def answer(positions, d_model):
        if d_model % 2:
            raise ValueError(f"d_model={d_model} is odd: a sine without its cosine")
        return target(positions, d_model)

    return answer


@mistake(
    "sinusoidal_positions",
    hint="All sines come first, then all cosines. Here they take turns: a sine, its cosine, the "
    "next sine. torch.stack, then flatten, instead of torch.cat.",
)
@_refuses_odd_sizes
def concatenates_the_halves(positions, d_model):
    angles = _angles(positions, d_model)
    return torch.cat([angles.sin(), angles.cos()], dim=1)


@mistake("sinusoidal_positions", hint="The cosine comes first in each pair. The sine should.")
@_refuses_odd_sizes
def begins_with_the_cosine(positions, d_model):
    angles = _angles(positions, d_model)
    return _interleaved(angles.cos(), angles.sin())


@mistake(
    "sinusoidal_positions",
    hint="The exponent is i / d_model instead of 2i / d_model: the wavelengths grow half as fast "
    "as they should.",
)
@_refuses_odd_sizes
def forgets_the_two(positions, d_model):
    exponents = _counted(positions, d_model // 2) / d_model
    return _sinusoids(_angles(positions, d_model, exponents))


@mistake(
    "sinusoidal_positions",
    hint="The exponent is divided by d_model / 2, on top of the 2 that is in 2i: the wavelengths "
    "grow twice as fast as they should.",
)
@_refuses_odd_sizes
def counts_the_two_twice(positions, d_model):
    exponents = _counted(positions, 0, d_model, 2) / (d_model / 2)
    return _sinusoids(_angles(positions, d_model, exponents))


FROM_0_TO_1 = (
    "The exponents run from 0 to 1: i is divided by one less than the number of pairs, as in "
    "tensor2tensor. In the paper they end before 1: 2i / d_model."
)


@mistake("sinusoidal_positions", hint=FROM_0_TO_1)
@_refuses_odd_sizes
def divides_by_one_pair_less(positions, d_model):
    exponents = _counted(positions, d_model // 2) / (d_model / 2 - 1)  # 0 / 0 with one pair
    return _sinusoids(_angles(positions, d_model, exponents))


@mistake("sinusoidal_positions", hint=FROM_0_TO_1)
@_refuses_odd_sizes
def divides_a_number_by_one_pair_less(positions, d_model):
    step = 1 / (d_model / 2 - 1)  # with one pair, an error of Python's
    return _sinusoids(_angles(positions, d_model, _counted(positions, d_model // 2) * step))


@mistake("sinusoidal_positions", hint=FROM_0_TO_1)
@_refuses_odd_sizes
def divides_by_one_pair_less_or_by_one(positions, d_model):
    exponents = _counted(positions, d_model // 2) / max(d_model // 2 - 1, 1)
    return _sinusoids(_angles(positions, d_model, exponents))


@mistake(
    "sinusoidal_positions",
    hint="A cosine has another wavelength than the sine beside it: its exponent is (2i + 1) / "
    "d_model. Both halves of a pair use the same angle.",
)
@_refuses_odd_sizes
def gives_each_column_its_own_angle(positions, d_model):
    columns = _counted(positions, d_model)
    angles = positions[:, None] / 10000 ** (columns / d_model)
    return torch.where(columns % 2 == 0, angles.sin(), angles.cos())


@mistake("sinusoidal_positions", hint="The base is 1000. In the paper it is 10000.")
@_refuses_odd_sizes
def takes_another_base(positions, d_model):
    return _sinusoids(_angles(positions, d_model, base=1000.0))


@mistake(
    "sinusoidal_positions",
    hint="The position is multiplied by 10000^(…) instead of divided: the waves get shorter and "
    "shorter. Divide, or put a minus into the exponent.",
)
@_refuses_odd_sizes
def multiplies(positions, d_model):
    return _sinusoids(_angles(positions, d_model, base=1 / 10000))


@mistake("sinusoidal_positions", hint="The first position is given as 0.0, and 1 is added to it.")
@_refuses_odd_sizes
def counts_from_one(positions, d_model):
    return _sinusoids(_angles(positions + 1, d_model))


@mistake(
    "sinusoidal_positions",
    hint="Rows and columns are swapped. There is one row per position.",
)
@_refuses_odd_sizes
def positions_across(positions, d_model):
    return _sinusoids(_angles(positions, d_model)).T


@mistake(
    "sinusoidal_positions",
    hint="The positions 0, 1, 2, … are made anew from the length. Use those that are given: they "
    "may begin elsewhere.",
)
@_refuses_odd_sizes
def counts_by_itself(positions, d_model):
    return _sinusoids(_angles(_counted(positions, len(positions)), d_model))


@mistake(
    "sinusoidal_positions",
    hint="Something is float32 whatever the positions are, as torch.zeros, .float() or a division "
    "of whole numbers make it. Use their dtype and their device.",
)
@_refuses_odd_sizes
def falls_back_to_float32(positions, d_model):
    return _sinusoids(_angles(positions.float(), d_model))


@mistake(
    "sinusoidal_positions",
    hint="The exponents are float32, and on the CPU: so torch.arange and torch.tensor make them "
    "unless told otherwise. On a GPU the positions cannot meet them: take over their device, and "
    "their dtype.",
)
@_refuses_odd_sizes
def counts_whole_numbers_on_the_cpu(positions, d_model):
    exponents = torch.arange(0, d_model, 2) / d_model
    return _sinusoids(_angles(positions, d_model, exponents))


@mistake(
    "sinusoidal_positions",
    hint="An odd d_model is not refused, and one column too many comes back. Raise a ValueError.",
)
def rounds_odd_sizes_up(positions, d_model):
    return _sinusoids(_angles(positions, d_model))


@alternative("sinusoidal_positions")
@_refuses_odd_sizes
def fills_the_columns(positions, d_model):
    table = positions.new_empty(len(positions), d_model)
    for i in range(0, d_model, 2):
        angle = positions * math.exp(-math.log(10000.0) * i / d_model)
        table[:, i], table[:, i + 1] = torch.sin(angle), torch.cos(angle)
    return table


@alternative("sinusoidal_positions")
@_refuses_odd_sizes
def shifts_the_phase(positions, d_model):
    columns = _counted(positions, d_model)
    even = columns - columns % 2
    phase = (columns % 2) * math.pi / 2
    return torch.sin(positions.outer(10000.0 ** (-even / d_model)) + phase)


@careless("sinusoidal_positions")
@_refuses_odd_sizes
def fills_a_table_on_the_cpu(positions, d_model):
    table = torch.zeros(len(positions), d_model)
    for i in range(0, d_model, 2):
        angle = positions / 10000 ** (i / d_model)
        table[:, i], table[:, i + 1] = torch.sin(angle), torch.cos(angle)
    return table


@careless("sinusoidal_positions")
@_refuses_odd_sizes
def counts_in_numpy(positions, d_model):
    exponents = numpy.arange(0, d_model, 2) / d_model
    angles = positions.numpy()[:, None] / 10000**exponents
    return torch.from_numpy(numpy.stack([numpy.sin(angles), numpy.cos(angles)], -1)).flatten(1)


class _Positions(nn.Module):
    """A right answer; a mistake overrides what it gets wrong."""

    def __init__(self, max_length, d_model):
        super().__init__()
        self.table = self.initial(max_length, d_model)

    def initial(self, max_length, d_model):
        return nn.Parameter(torch.randn(max_length, d_model) / 50)

    def forward(self, x):
        self.refuse(x)
        return x + self.rows(x)

    def refuse(self, x):
        if x.shape[1] > self.table.shape[0]:
            raise ValueError(f"T={x.shape[1]} is more than max_length={self.table.shape[0]}")

    def rows(self, x):
        return self.table[: x.shape[1]]


@mistake(
    "LearnedPositions",
    hint="The vectors differ from sequence to sequence, not from position to position: the batch "
    "axis was taken for time. x is (B, T, d_model); time is axis 1.",
    earns=("the refusal",),
)
class CountsAlongTheBatch(_Positions):
    def rows(self, x):
        return self.table[: x.shape[0], None]


@mistake(
    "LearnedPositions",
    hint="x.shape[0] is the size of the batch. The positions run along axis 1.",
    earns=("the refusal",),
)
class TakesTheSizeOfTheBatch(_Positions):
    def rows(self, x):
        return self.table[: x.shape[0]]


@mistake(
    "LearnedPositions",
    hint="The whole table is added, whatever the length of the sequence. Take its first T rows.",
    earns=("the refusal",),
)
class AddsTheWholeTable(_Positions):
    def rows(self, x):
        return self.table


@mistake(
    "LearnedPositions",
    hint="The last T rows are added. Position 0 always has row 0.",
    earns=("the refusal",),
)
class TakesTheLastRows(_Positions):
    def rows(self, x):
        return self.table[-x.shape[1] :]


@mistake(
    "LearnedPositions",
    hint="The table is an ordinary tensor, which no optimiser would find. Wrap it in nn.Parameter.",
)
class IsNotLearned(_Positions):
    def initial(self, max_length, d_model):
        return torch.randn(max_length, d_model) / 50


@mistake(
    "LearnedPositions",
    hint="The table is (d_model, max_length). Each position has a row.",
)
class LiesOnItsSide(_Positions):
    def initial(self, max_length, d_model):
        return nn.Parameter(torch.randn(d_model, max_length) / 50)


@mistake(
    "LearnedPositions",
    hint="x is multiplied by its positions. Add them.",
    earns=("the refusal",),
)
class Multiplies(_Positions):
    def forward(self, x):
        self.refuse(x)
        return x * self.rows(x)


@mistake(
    "LearnedPositions",
    hint="Only the positions come back. Add them to x.",
    earns=("the refusal",),
)
class ForgetsX(_Positions):
    def forward(self, x):
        self.refuse(x)
        return self.rows(x).expand_as(x)


@mistake(
    "LearnedPositions",
    hint="x += … writes into the tensor of the caller. Make a new one.",
)
class AddsInPlace(_Positions):
    def forward(self, x):
        self.refuse(x)
        x += self.rows(x)
        return x


@mistake(
    "LearnedPositions",
    hint="A sequence that is too long raises PyTorch's own error about sizes. Say it in your own "
    "ValueError, with both numbers.",
    earns=("the sums",),
)
class LeavesItToPyTorch(_Positions):
    def refuse(self, x):
        pass


@mistake(
    "LearnedPositions",
    hint="Positions beyond the table begin again at row 0, so two positions look alike. Refuse "
    "such a sequence.",
    earns=("the sums",),
)
class WrapsAround(_Positions):
    def refuse(self, x):
        pass

    def rows(self, x):
        return self.table[torch.arange(x.shape[1], device=x.device) % len(self.table)]


@mistake(
    "LearnedPositions",
    hint="assert is for what can never happen, and python -O leaves it out. Raise a ValueError.",
    earns=("the sums",),
)
class AssertsTheLength(_Positions):
    def refuse(self, x):
        assert x.shape[1] <= len(self.table)


@mistake(
    "LearnedPositions",
    hint="The error is right. Its message should name both numbers.",
    earns=("the sums",),
)
class ErrorWithoutNumbers(_Positions):
    def refuse(self, x):
        if x.shape[1] > len(self.table):
            raise ValueError("the sequence is too long")


@alternative("LearnedPositions")
class LooksUpTheRows(_Positions):
    def rows(self, x):
        return nn.functional.embedding(torch.arange(x.shape[1], device=x.device), self.table)


@mistake(
    "LearnedPositions",
    hint="The table starts with zeros. It should start with small random numbers.",
    earns=("the refusal",),
)
class StartsAtZero(_Positions):
    def initial(self, max_length, d_model):
        return nn.Parameter(torch.zeros(max_length, d_model))


@mistake(
    "LearnedPositions",
    hint="The table starts with torch.randn as it is: as large as the tokens' vectors or larger. "
    "Make it small, by a factor such as 0.02.",
    earns=("the refusal",),
)
class StartsLarge(_Positions):
    def initial(self, max_length, d_model):
        return nn.Parameter(torch.randn(max_length, d_model))


@alternative("LearnedPositions")
class RowAfterRow(_Positions):
    def initial(self, max_length, d_model):
        return nn.Parameter(torch.empty(max_length, d_model).uniform_(-0.1, 0.1))

    def forward(self, x):
        self.refuse(x)
        return torch.stack([row + self.rows(x) for row in x])


@careless("LearnedPositions")
class CountsOnTheCpu(_Positions):
    def rows(self, x):
        return nn.functional.embedding(torch.arange(x.shape[1]), self.table)


@careless("LearnedPositions")
class FillsTheSums(_Positions):
    def forward(self, x):
        self.refuse(x)
        sums = torch.zeros(x.shape)
        for t in range(x.shape[1]):
            sums[:, t] = x[:, t] + self.table[t]
        return sums


def _turn(x, positions, sign=1.0, exponents=None, base=10000.0):
    angles = sign * _angles(positions, x.shape[-1], exponents, base)
    first, second, cos, sin = x[..., 0::2], x[..., 1::2], angles.cos(), angles.sin()
    return _interleaved(first * cos - second * sin, first * sin + second * cos)


@mistake(
    "rotary",
    hint="It turns backwards: (1, 0) by a quarter turn should be (0, 1), not (0, -1). The minus "
    "belongs to the other sine.",
)
def turns_backwards(x, positions):
    return _turn(x, positions, sign=-1.0)


@mistake(
    "rotary",
    hint="Feature i is paired with feature i + d_head / 2. Here neighbours are pairs: 0 and 1, 2 "
    "and 3, …",
)
def pairs_the_halves(x, positions):
    angles = _angles(positions, x.shape[-1])
    (first, second), cos, sin = x.chunk(2, dim=-1), angles.cos(), angles.sin()
    return torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)


@mistake(
    "rotary",
    hint="Two layouts are mixed: feature i is turned towards feature i + d_head / 2, but the "
    "angles stand as for neighbours: both features of a pair need the same. Here neighbours are "
    "pairs.",
)
def turns_halves_by_angles_of_neighbours(x, positions):
    angles = _angles(positions, x.shape[-1]).repeat_interleave(2, -1)
    first, second = x.chunk(2, -1)
    return x * angles.cos() + torch.cat([-second, first], -1) * angles.sin()


@mistake(
    "rotary",
    hint="Two layouts are mixed: neighbours are pairs, as they should be, but the angles stand as "
    "for two halves, first one for each pair, then all of them again. Both features of a pair need "
    "the same.",
)
def turns_neighbours_by_angles_of_halves(x, positions):
    angles = torch.cat([_angles(positions, x.shape[-1])] * 2, -1)
    other = _interleaved(-x[..., 1::2], x[..., 0::2])
    return x * angles.cos() + other * angles.sin()


@mistake(
    "rotary",
    hint="The pairs are turned, but put together as two halves. Each turned pair goes back to its "
    "own two places: torch.stack and flatten.",
)
def puts_the_halves_together(x, positions):
    turned = _turn(x, positions)
    return torch.cat([turned[..., 0::2], turned[..., 1::2]], dim=-1)


@mistake(
    "rotary",
    hint="Both sines have the same sign, so vectors change their length. A rotation has one minus.",
)
def has_no_minus(x, positions):
    angles = _angles(positions, x.shape[-1])
    first, second, cos, sin = x[..., 0::2], x[..., 1::2], angles.cos(), angles.sin()
    return _interleaved(first * cos + second * sin, first * sin + second * cos)


@mistake(
    "rotary",
    hint="This is a mirror image: the second feature of each pair has the wrong sign.",
)
def mirrors(x, positions):
    angles = _angles(positions, x.shape[-1])
    first, second, cos, sin = x[..., 0::2], x[..., 1::2], angles.cos(), angles.sin()
    return _interleaved(first * cos + second * sin, first * sin - second * cos)


@mistake(
    "rotary",
    hint="The sinusoids are added to x. Rotary positions turn x and add nothing.",
)
def adds_the_sinusoids(x, positions):
    return x + _sinusoids(_angles(positions, x.shape[-1]))


@mistake(
    "rotary",
    hint="All pairs turn at the same speed. Pair i turns by the position over 10000^(2i / d_head).",
)
def turns_all_pairs_alike(x, positions):
    return _turn(x, positions, exponents=x.new_zeros(x.shape[-1] // 2))


@mistake("rotary", hint="The exponent is i / d_head. It should be 2i / d_head.")
def halves_the_exponent(x, positions):
    d_head = x.shape[-1]
    return _turn(x, positions, exponents=_counted(positions, d_head // 2) / d_head)


@mistake("rotary", hint="The base is 1000. It should be 10000.")
def turns_with_another_base(x, positions):
    return _turn(x, positions, base=1000.0)


@mistake(
    "rotary",
    hint="The second feature is computed from the first one after that was turned already. Keep "
    "the old first feature until both are done.",
)
def uses_the_new_first(x, positions):
    angles = _angles(positions, x.shape[-1])
    second, cos, sin = x[..., 1::2], angles.cos(), angles.sin()
    first = x[..., 0::2] * cos - second * sin
    return _interleaved(first, first * sin + second * cos)


@mistake(
    "rotary",
    hint="The positions 0, 1, 2, … are made anew from the length. Use those that are given.",
)
def turns_by_its_own_count(x, positions):
    return _turn(x, _counted(positions, x.shape[-2]))


def _in_bfloat16(known, cast):
    """The same mistake, with the result, the angles or only the speeds in x's dtype."""

    def answer(x, positions):
        if cast == "result":
            return known.target(x, positions).to(x.dtype)
        if cast == "speeds":
            token = _SPEEDS.set(x.dtype)
            try:
                return known.target(x, positions)
            finally:
                _SPEEDS.reset(token)
        return known.target(x, positions.to(x.dtype))

    answer.__name__ = f"{known.name}_and_casts_the_{cast}"
    return answer


# As they are, they leave the result in the dtype of the angles. Learners may do this or that.
again(
    "rotary", *(functools.partial(_in_bfloat16, cast=one) for one in ("result", "angles", "speeds"))
)


IN_ITS_DTYPE = (
    "The angles are computed in x's dtype, and bfloat16 cannot count beyond 256: 257 becomes 256. "
    "Compute them in the dtype of the positions."
)


@mistake("rotary", hint=IN_ITS_DTYPE)
def computes_the_angles_in_the_dtype_of_x(x, positions):
    return _turn(x, positions.to(x.dtype))


@mistake("rotary", hint=IN_ITS_DTYPE)
def computes_the_speeds_in_the_dtype_of_x(x, positions):
    d_head = x.shape[-1]
    return _turn(x, positions, exponents=_counted(x, 0, d_head, 2) / d_head).to(x.dtype)


@mistake(
    "rotary",
    hint="Where x is bfloat16 and the positions are float32, the speeds are rounded to bfloat16, "
    "and the result is float32. It should be the other way round.",
)
def takes_the_dtypes_for_one(x, positions):
    d_head = x.shape[-1]
    return _turn(x, positions, exponents=_counted(x, 0, d_head, 2) / d_head)


@mistake(
    "rotary",
    hint="The angles are rounded to x's dtype before their sines and cosines are taken. Round "
    "nothing but the result.",
)
def rounds_the_angles(x, positions):
    angles = _angles(positions, x.shape[-1]).to(x.dtype)
    first, second, cos, sin = x[..., 0::2], x[..., 1::2], angles.cos(), angles.sin()
    return _interleaved(first * cos - second * sin, first * sin + second * cos)


@mistake(
    "rotary",
    hint="x is bfloat16, and the result has the dtype of the angles. Bring it back to x's: "
    "`.to(x.dtype)`.",
)
def leaves_the_dtype_of_the_angles(x, positions):
    return _turn(x, positions)


@alternative("rotary")
def with_complex_numbers(x, positions):
    angles = _angles(positions, x.shape[-1])
    pairs = torch.complex(x[..., 0::2].to(angles.dtype), x[..., 1::2].to(angles.dtype))
    turned = pairs * torch.complex(angles.cos(), angles.sin())
    return torch.stack([turned.real, turned.imag], dim=-1).reshape(x.shape).to(x.dtype)


@alternative("rotary")
def with_doubled_angles(x, positions):
    angles = _angles(positions, x.shape[-1]).repeat_interleave(2, dim=-1)
    other = torch.stack([-x[..., 1::2], x[..., 0::2]], dim=-1).reshape(x.shape)
    return x * angles.cos().to(x.dtype) + other * angles.sin().to(x.dtype)  # rounded before


@alternative("rotary")
def in_float64_throughout(x, positions):
    rows = []
    for row, position in zip(x.double().unbind(-2), positions.tolist(), strict=True):
        turned = row.clone()
        for i in range(0, x.shape[-1], 2):
            angle = position / 10000 ** (i / x.shape[-1])
            cos, sin = math.cos(angle), math.sin(angle)
            turned[..., i] = row[..., i] * cos - row[..., i + 1] * sin
            turned[..., i + 1] = row[..., i] * sin + row[..., i + 1] * cos
        rows.append(turned)
    return torch.stack(rows, dim=-2).to(x.dtype)


@careless("rotary")
def fills_pairs_on_the_cpu(x, positions):
    turned, angles = torch.zeros(x.shape, dtype=x.dtype), _angles(positions, x.shape[-1])
    first, second, cos, sin = x[..., 0::2], x[..., 1::2], angles.cos(), angles.sin()
    turned[..., 0::2] = first * cos - second * sin
    turned[..., 1::2] = first * sin + second * cos
    return turned


@careless("rotary")
def counts_pairs_on_the_cpu(x, positions):
    exponents = torch.arange(0, x.shape[-1], 2) / x.shape[-1]
    return _turn(x, positions, exponents=exponents).to(x.dtype)


@careless("rotary")
def turns_in_place(x, positions):
    x[:] = _turn(x, positions)
    return x


ONE_COUNT_A_WORD = "there are as many counts as words"
ONE_DEVICE = "x and its positions are on one device"
FLOAT32_SPEEDS = "the speeds may be of float32: the angles change by 1e-5 at most"
EQUIVALENT = {
    "count_pairs: without `strict` in one call of `zip`: for word, count in zip(words, counts): "
    "for pair in pairwise(word): totals[pair] += count": ONE_COUNT_A_WORD,
    "count_pairs: with False once where True belongs: for word, count in zip(words, counts, "
    "strict=False): for pair in pairwise(word): totals[pair] += count": ONE_COUNT_A_WORD,
    "merge_pair: with one call of `tuple` left out: if tuple(ids[place:place + 2]) == pair: "
    "merged.append(new_id) place += 2 else: merged.append(ids[place]) place += 1": "the pair is "
    "given as a tuple",
    "LearnedPositions: with one constant twice as large: self.table = nn.Parameter(0.04 * "
    "torch.randn(max_length, d_model))": "small is small",
    "sinusoidal_positions: without `dtype` in one call of `arange`: exponents = torch.arange(0, "
    "d_model, 2, device=positions.device)": FLOAT32_SPEEDS,
    "rotary: without `dtype` in one call of `arange`: exponents = torch.arange(0, d_head, 2, "
    "device=x.device)": FLOAT32_SPEEDS,
    "sinusoidal_positions: whose result is cut off from the gradient: return "
    "pairs.flatten(start_dim=1).detach()": "positions are counted, not learned",
    "rotary: with `positions` once where `x` belongs: exponents = torch.arange(0, d_head, 2, "
    "dtype=positions.dtype, device=positions.device)": ONE_DEVICE,
    "rotary: with one bound of a slice left out: first, second = (x[..., ::2], x[..., 1::2])": "a "
    "slice begins at 0 anyway",
}
