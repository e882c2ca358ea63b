"""The picture on the book's first page: a number is written letter by letter, with its attention.

Here the whole picture is drawn as SVG, from what the shipped model computes. The script
`book/_static/translation.js` only shows its parts one after the other; without it all is there.
"""

from html import escape

from attention.provided.models.number_translator import NumberTranslator, Translation

NUMBERS = (957, 851, 342, 167)  # none was trained on, and German turns the last two words round
WIDTH, HEIGHT, LETTER, GAP = 616, 232, 22, 22  # in the units of the drawing
TOP, BOTTOM, CHARACTER = 34, 214, 15.6  # lines of the words, of the letters; width of a character
LEAST = 0.04  # a weight below it is not drawn
SAID = (
    "A trained Transformer reads “{english}” and writes “{german}”, letter by letter. Lines lead "
    "from each letter to the English words that it looked at: they cross, because German says the "
    "ones before the tens."
)
CAPTION = (
    "The Transformer of lesson 10 writes numbers that were kept out of its training. The stronger "
    "a line, the more a letter looked at a word."
)


def moving_picture() -> str:
    """HTML without empty lines, to stand in a page of Markdown."""
    translator = NumberTranslator()
    drawings = [_drawing(translator.translate(number)) for number in NUMBERS]
    return "\n".join(
        [
            '<figure class="translation">',
            *(one if index == 0 else one.replace("<svg", "<svg hidden", 1)
              for index, one in enumerate(drawings)),
            f"<figcaption>{CAPTION}",
            '<button type="button" hidden>Another number</button></figcaption>',
            "</figure>",
        ]
    )  # fmt: skip


def _drawing(one: Translation) -> str:
    """One number: its words, and for each letter lines to the words that it looked at."""
    words = one.words[:-1]  # the token that ends them is not drawn
    widths = [CHARACTER * len(word) for word in words]
    left = (WIDTH - sum(widths) - GAP * (len(words) - 1)) / 2
    places = [left + sum(widths[:i]) + GAP * i + widths[i] / 2 for i in range(len(words))]
    start = (WIDTH - LETTER * (len(one.letters) - 1)) / 2
    said = SAID.format(english=" ".join(words), german="".join(one.letters))
    lines = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(said)}">']
    for word, width, place in zip(words, widths, places, strict=True):
        lines.append(
            f'<rect x="{place - width / 2 - 6:g}" y="{TOP - 26}" width="{width + 12:g}" height="36"'
            f' rx="6"/><text x="{place:g}" y="{TOP}">{escape(word)}</text>'
        )
    for number, (letter, row) in enumerate(zip(one.letters, one.weights.tolist(), strict=True)):
        x = start + LETTER * number
        weights = " ".join(f"{weight:.2f}" for weight in row[: len(words)])
        lines.append(f'<g data-weights="{weights}"><text x="{x:g}" y="{BOTTOM}">{letter}</text>')
        lines += [
            f'<line x1="{x:g}" y1="{BOTTOM - 26}" x2="{place:g}" y2="{TOP + 14}"'
            f' stroke-opacity="{weight:.2f}"/>'
            for place, weight in zip(places, row, strict=False)
            if weight >= LEAST
        ]
        lines.append("</g>")
    return "\n".join([*lines, "</svg>"])
