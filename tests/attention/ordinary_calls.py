"""One ordinary call of every function that takes a number or a mask, and what each may be."""

import math

import torch

from attention import (
    bahdanau_attention,
    efficient_attention,
    encoders_and_vision,
    modern_decoder,
    multi_head_attention,
    published_model,
    score_functions,
    sequence_to_sequence,
    training,
    training_on_gpu,
    transformer,
    transformer_blocks,
)
from attention import interpretability as looks
from attention import kernel_regression as kernels
from attention import language_models as language
from attention import masked_attention as masked
from attention import multi_head_attention as heads
from attention import scaled_dot_product_attention as scaled
from attention import tokens_and_positions as positions
from attention.experiments import efficient_attention as recall
from attention.experiments import interpretability
from attention.provided.data import digits, documents, keywords
from attention.provided.data.numbers import in_words, numbers
from attention.provided.measuring import other_weights, rank_agreement
from attention.train.runs import curves
from attention.train.speed import acceleration

COUNT, ANY_COUNT = ("whole", 1, math.inf), ("whole", 0, math.inf)
POSITIVE, FROM_0 = ("above", 0.0, math.inf), ("real", 0.0, math.inf)
PROBABILITY, BELOW_1 = ("real", 0.0, 1.0), ("below", 0.0, 1.0)

NUMBERS = {
    **dict.fromkeys(("bandwidth", "temperature", "loss_scale", "max_norm", "scale"), POSITIVE),
    **dict.fromkeys(("D", "eps", "factor", "learning_rate", "weight_decay"), FROM_0),
    **dict.fromkeys(("dropout", "share", "smoothing", "tolerance"), PROBABILITY),
    "p": BELOW_1,
    ("Residual", "dropout"): BELOW_1,
    ("epoch_order", "seed"): ANY_COUNT,
    ("TrainStep", "max_norm"): ("above, or infinite", 0.0, math.inf),
    **dict.fromkeys(
        (
            ("attention_multiplications", "d_k"),
            ("attention_multiplications", "d_v"),
            ("rnn_multiplications", "d"),
            ("layer_costs", "d"),
            ("score_costs", "d"),
        ),
        ANY_COUNT,
    ),
    "baseline": ("real", -math.inf, math.inf),
    "sureness": FROM_0,
    **dict.fromkeys(("n_heads", "n_layers", "vocab_size", "source_size", "target_size"), COUNT),
    **dict.fromkeys(("block", "block_size", "n_blocks", "stride", "size", "patch_size"), COUNT),
    **dict.fromkeys(("d", "d_attention", "d_embedding", "d_ff", "d_head", "d_k", "d_v"), COUNT),
    **dict.fromkeys(("d_memory", "d_model", "d_q", "d_state", "n_kv_heads", "channels"), COUNT),
    **dict.fromkeys(("n_classes", "n_experts", "bytes_per_number", "max_tokens"), COUNT),
    **dict.fromkeys(("step", "warmup_steps", "patience", "max_length", "width", "n_types"), COUNT),
    **dict.fromkeys(("n_new", "batch", "group"), COUNT),
    **dict.fromkeys(("T", "T_q", "T_k", "B", "r", "n_merges", "n_random", "window"), ANY_COUNT),
    **dict.fromkeys(("n_batches", "epoch", "good_steps", "i", "j", "n_cached"), ANY_COUNT),
    **dict.fromkeys(
        ("n_train", "n_test", "repeats", "draws", "count", "length", "n", "steps"), COUNT
    ),
    ("MixtureOfExperts", "k"): ("whole", 1, 3),
    ("top_k_gate", "k"): ("whole", 1, 4),
    ("leaks", "t"): ("whole", 0, 4),
    ("search", "k"): ("whole", 1, 3),
    ("bigbird_mask", "n_random"): ("whole", 0, 5),
    ("window_in_blocks", "window"): COUNT,
    ("local_window", "T_k"): COUNT,
    ("generate", "max_length"): ANY_COUNT,
    ("generate_with_cache", "max_length"): ANY_COUNT,
    ("newton_schulz", "steps"): ANY_COUNT,
    **{(f"Modern{part}", "window"): COUNT for part in ("Attention", "DecoderLayer", "Decoder")},
    ("cache_bytes", "window"): COUNT,
    "multiple": COUNT,
    "momentum": BELOW_1,
    ("predictive_local_weights", "D"): POSITIVE,
    ("sinusoidal_positions", "d_model"): ("whole", 2, math.inf),
    ("recall.make", "pairs"): ("whole", 1, 64),
    ("keywords.make", "length"): ("whole", 4, math.inf),
    ("operations_per_byte", "group"): ("whole", 1, 8),
    ("layer_costs", "T"): ("whole", 2, math.inf),
    ("layer_costs", "width"): ("whole", 2, math.inf),
    ("in_words", "number"): ("whole", 0, 999_999_999_999),
    ("numbers", "digits"): ("whole", 1, 12),
}
MASKS = {"mask", "memory_mask", "source_mask", "target_mask", "counted", "role", "masks", "places"}

# Python's and PyTorch's own words do here: a size below 0, or none at all, is refused with its
# number or type. A size of 0 makes an empty tensor, as it does in PyTorch.
SIZES = {
    "AdditiveAttention": ("d_q", "d_k", "d_attention"),
    "FeedForward": ("d_model", "d_ff"),
    "LayerNorm": ("d_model",),
    "LearnedPositions": ("max_length", "d_model"),
    "MixtureOfExperts": ("d_model", "d_ff"),
    "SelfAttentionHead": ("d_model", "d_head"),
    "as_bilinear": ("d",),
}
SPECIAL = {(label, name) for label, names in SIZES.items() for name in names}

# What is neither a number nor a mask: tensors, names, functions, models.
_OTHERS = """
W_h W_k W_o W_q W_x annotations b_h b_x backward batches betas bias causal centres checkpoints
choose chosen context cosine counts cross device dim direction dtype embedding encoder forward
function fused gates global_positions grad_context gradient gradients h head_mask heads hidden
hypotheses hypothesis ids image_size images inputs k kernel key keys kind labels lengths logits
lse m mask_id matches matrix maximum memory merges mixing model modules name new_id noise
normaliser optimizer other others ours pair parameter passages past place positions pre_norm
published q qk_norm queries query read real reference reference_lengths references return_layers
return_weights reverse rewards rows scores seed self similarity skip source state states summaries
t table target text texts theirs tied tokens total totals u uniform update v value values
vocabulary wanted weight weights word words x x_train y_train
"""
OTHERS = {*_OTHERS.split()}

IDS = torch.tensor([[4, 5, 2], [6, 2, 0]])  # (2, 3)
SEEN = torch.tensor([[True, True, True], [True, True, False]])  # (2, 3)
ALL = torch.ones(5, 5, dtype=torch.bool).tril()
SIZE = {"d_model": 12, "n_heads": 3, "d_ff": 8}
LAYER = SIZE | {"n_heads": 1}
STACK = LAYER | {"n_layers": 1}


def draw(*shape):
    """Numbers that are the same in every run."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


def gru(d_x, d):
    """Weights of a GRU."""
    return {"W_x": draw(3 * d, d_x), "W_h": draw(3 * d, d), "b_x": draw(3 * d), "b_h": draw(3 * d)}


def step_weights():
    """Weights of `decoder_step`, for a state of 3 and a context of 3."""
    return {"embedding": draw(7, 4), **gru(7, 3), "W_out": draw(7, 6), "b_out": draw(7)}


def of(function, **arguments):
    """A call that can be made again and again."""
    return lambda: (function, arguments)


def of_module(make, method="forward", **arguments):
    """A call of a method of a module that is made for it."""

    def call():
        torch.manual_seed(0)
        return getattr(make().eval(), method), arguments

    return call


def _transformer():
    return transformer.Transformer(9, 9, **SIZE, n_layers=1, dropout=0.0)


def _translator():
    return transformer.Translator(9, 9, **SIZE, dropout=0.0)


def _logits(tokens):
    return draw(*tokens.shape, 9)


def _best(logits):
    return logits.argmax(dim=1)


Q, X = draw(2, 5, 12), draw(2, 5, 12)
HEADS = draw(2, 3, 5, 4)
SOURCE_MASK, TARGET_MASK = transformer.masks_from_tokens(IDS, IDS)
FLOPS = {"d_model": 4, "d_ff": 8, "n_layers": 2, "vocab_size": 9}

CALLS = {
    # Lessons 01 to 04
    "soft_lookup": of(
        kernels.soft_lookup, query=draw(3), keys=draw(4, 3), values=draw(4, 2), temperature=1.0
    ),
    "nadaraya_watson": of(
        kernels.nadaraya_watson, x=draw(3), x_train=draw(4), y_train=draw(4), bandwidth=1.0
    ),
    "kernel_regression": of(
        kernels.kernel_regression,
        x=draw(3),
        x_train=draw(4),
        y_train=draw(4),
        kernel="gaussian",
        bandwidth=1.0,
    ),
    "leave_one_out_loss": of(
        kernels.leave_one_out_loss, x_train=draw(4), y_train=draw(4), bandwidth=1.0
    ),
    "LearnedBandwidth": of(kernels.LearnedBandwidth, bandwidth=1.0),
    "greedy_decode": of(
        sequence_to_sequence.greedy_decode,
        state=draw(2, 3),
        context=draw(2, 3),
        weights=step_weights(),
        max_length=4,
    ),
    "Seq2Seq": of(
        sequence_to_sequence.Seq2Seq, source_size=7, target_size=7, d_embedding=4, d_state=3
    ),
    "Seq2Seq.translate": of_module(
        lambda: sequence_to_sequence.Seq2Seq(7, 7, 4, 3),
        "translate",
        source=IDS,
        lengths=torch.tensor([3, 2]),
        max_length=4,
    ),
    "AdditiveAttention": of(bahdanau_attention.AdditiveAttention, d_q=3, d_k=4, d_attention=5),
    "BahdanauTranslator": of(
        bahdanau_attention.BahdanauTranslator,
        source_size=7,
        target_size=7,
        d_embedding=4,
        d_state=3,
        d_attention=5,
    ),
    "BahdanauTranslator.translate": of_module(
        lambda: bahdanau_attention.BahdanauTranslator(7, 7, 4, 3, 5),
        "translate",
        source=IDS,
        lengths=torch.tensor([3, 2]),
        max_length=4,
    ),
    "as_bilinear": of(score_functions.as_bilinear, kind="dot", d=3, weights={}),
    "score_costs": of(score_functions.score_costs, kind="additive", T_q=2, T_k=3, d=4, r=5),
    "gaussian_scores": of(
        score_functions.gaussian_scores, q=draw(2, 3, 4), k=draw(2, 5, 4), bandwidth=1.0
    ),
    "local_window": of(score_functions.local_window, centres=draw(3), T_k=4, D=1),
    "predictive_local_weights": of(
        score_functions.predictive_local_weights,
        scores=draw(2, 4),
        centres=torch.tensor([1.0, 2.0]),
        D=2,
    ),
    "reinforce_gradient": of(
        score_functions.reinforce_gradient,
        scores=draw(3),
        chosen=torch.tensor([0, 2]),
        rewards=draw(2),
        baseline=0.5,
    ),
    # Lessons 05 to 07
    "scaled_dot_product_attention": of(
        scaled.scaled_dot_product_attention, q=Q, k=Q, v=Q, mask=ALL
    ),
    "SelfAttentionHead": of(scaled.SelfAttentionHead, d_model=12, d_head=4),
    "SelfAttentionHead.forward": of_module(lambda: scaled.SelfAttentionHead(12, 4), x=X, mask=ALL),
    "attention_multiplications": of(scaled.attention_multiplications, T_q=2, T_k=3, d_k=4, d_v=5),
    "rnn_multiplications": of(scaled.rnn_multiplications, T=2, d=3),
    "layer_costs": of(scaled.layer_costs, kind="convolution", T=5, d=3, width=2),
    "padding_mask": of(masked.padding_mask, lengths=torch.tensor([1, 3]), T=3),
    "causal_mask": of(masked.causal_mask, T=3),
    "local_mask": of(masked.local_mask, T=4, window=1),
    "longformer_mask": of(masked.longformer_mask, T=4, window=1, global_positions=[]),
    "bigbird_mask": of(masked.bigbird_mask, n_blocks=5, block_size=2, n_random=1, seed=0),
    "combine_masks": of(lambda masks: masked.combine_masks(masks), masks=ALL),
    "masked_attention": of(masked.masked_attention, q=Q, k=Q, v=Q, mask=ALL),
    "leaks": of(masked.leaks, name="A", x=draw(5, 3), t=1),
    "sliding_window_attention": of(masked.sliding_window_attention, q=Q, k=Q, v=Q, window=1),
    "split_heads": of(heads.split_heads, x=X, n_heads=3),
    "attend": of(heads.attend, q=HEADS, k=HEADS, v=HEADS, mask=ALL, dropout=0.0),
    "attend, fused": of(heads.attend, q=HEADS, k=HEADS, v=HEADS, mask=ALL, dropout=0.0, fused=True),
    "MultiHeadAttention": of(heads.MultiHeadAttention, d_model=12, n_heads=1, dropout=0.1),
    "MultiHeadAttention.forward": of_module(
        lambda: heads.MultiHeadAttention(12, 3), query=X, key=X, value=X, mask=ALL
    ),
    "MultiHeadAttention.forward, fused": of_module(
        lambda: heads.MultiHeadAttention(12, 3, fused=True), query=X, key=X, value=X, mask=ALL
    ),
    "attention_parameters": of(heads.attention_parameters, d_model=4, n_heads=2, d_head=3),
    "share_heads": of(heads.share_heads, x=draw(2, 1, 3, 4), n_heads=3),
    "collaborative_heads": of(
        heads.collaborative_heads,
        q=draw(2, 5, 6),
        k=draw(2, 7, 6),
        v=draw(2, 3, 7, 4),
        mixing=draw(3, 6),
        d_head=2,
    ),
    # Lessons 08 to 10
    "train_bpe": of(positions.train_bpe, words=[[3, 4, 5], [4, 5]], counts=[1, 1], n_merges=2),
    "sinusoidal_positions": of(
        positions.sinusoidal_positions, positions=torch.arange(3.0), d_model=4
    ),
    "LearnedPositions": of(positions.LearnedPositions, max_length=5, d_model=4),
    "LayerNorm": of(transformer_blocks.LayerNorm, d_model=4, eps=1e-5),
    "FeedForward": of(transformer_blocks.FeedForward, d_model=4, d_ff=8, dropout=0.1),
    "Residual": of(transformer_blocks.Residual, dropout=0.1),
    "EncoderLayer": of(transformer_blocks.EncoderLayer, **LAYER),
    "EncoderLayer.forward": of_module(
        lambda: transformer_blocks.EncoderLayer(**SIZE), x=X, mask=ALL
    ),
    "DecoderLayer": of(transformer_blocks.DecoderLayer, **LAYER),
    "DecoderLayer.forward": of_module(
        lambda: transformer_blocks.DecoderLayer(**SIZE), x=X, memory=X, mask=ALL, memory_mask=ALL
    ),
    "layer_parameters": of(transformer_blocks.layer_parameters, d_model=4, d_ff=8),
    "Translator": of(transformer.Translator, source_size=9, target_size=9, **LAYER),
    "Translator.encode": of_module(_translator, "encode", source=IDS, source_mask=SOURCE_MASK),
    "Translator.decode": of_module(
        _translator,
        "decode",
        read=IDS,
        memory=draw(2, 3, 12),
        target_mask=TARGET_MASK,
        source_mask=SOURCE_MASK,
    ),
    "Translator.forward": of_module(
        _translator, source=IDS, target=IDS, source_mask=SOURCE_MASK, target_mask=TARGET_MASK
    ),
    "Encoder": of(transformer.Encoder, n_layers=2, **LAYER),
    "Encoder.forward": of_module(lambda: transformer.Encoder(2, **SIZE), x=X),
    "Decoder": of(transformer.Decoder, n_layers=2, **LAYER),
    "Decoder.forward": of_module(
        lambda: transformer.Decoder(2, **SIZE, fused=True), x=X, memory=X, mask=ALL, memory_mask=ALL
    ),
    "Transformer": of(transformer.Transformer, source_size=9, target_size=9, **STACK),
    "Transformer.translate": of_module(_transformer, "translate", source=IDS, max_length=4),
    "transformer_parameters": of(
        transformer.transformer_parameters,
        source_size=9,
        target_size=9,
        d_model=4,
        d_ff=8,
        n_layers=2,
    ),
    # Lessons 11 and 12
    "noam_learning_rate": of(
        training.noam_learning_rate, step=3, d_model=4, warmup_steps=4, factor=1.0
    ),
    "label_smoothed_loss": of(
        training.label_smoothed_loss, logits=draw(2, 3, 9), target=IDS, smoothing=0.1
    ),
    "batch_by_tokens": of(training.batch_by_tokens, lengths=[1, 1], max_tokens=9),
    "epoch_order": of(training.epoch_order, n_batches=5, seed=0, epoch=2),
    "clip_gradients": of(
        training.clip_gradients, gradients=[draw(3)], max_norm=1.0, loss_scale=1.0
    ),
    "adamw_step": of(
        training.adamw_step,
        parameter=draw(3),
        gradient=draw(3),
        m=torch.zeros(3),
        v=torch.zeros(3),
        step=1,
        learning_rate=0.1,
        eps=1e-9,
        weight_decay=0.1,
    ),
    "ModelAndLoss": of(training.ModelAndLoss, model=_transformer(), smoothing=0.1, dtype=None),
    "TrainStep": of(training.TrainStep, model=_transformer(), smoothing=0.1, max_norm=1.0),
    "Evaluation": of(training.Evaluation, model=_transformer(), smoothing=0.1),
    "training_flops": of(training_on_gpu.training_flops, T_k=2, T_q=3, **FLOPS),
    "training_memory": of(
        training_on_gpu.training_memory, B=2, T=3, d_model=4, n_heads=2, d_ff=8, n_layers=2
    ),
    "loss_scaling": of(
        training_on_gpu.loss_scaling,
        gradients=[draw(3).half()],
        scale=4.0,
        good_steps=1,
        patience=5,
    ),
    # Lessons 15 to 18
    "language_model_loss": of(
        language.language_model_loss, logits=draw(2, 3, 9), tokens=IDS, counted=SEEN
    ),
    "DecoderOnly": of(language.DecoderOnly, vocab_size=9, **STACK),
    "generate": of(language.generate, model=_logits, tokens=IDS, choose=_best, max_length=3),
    "local_block_attention": of(language.local_block_attention, q=Q, k=Q, v=Q, block=2),
    "memory_compressed_attention": of(
        language.memory_compressed_attention, q=Q, k=draw(2, 2, 12), v=draw(2, 2, 12), stride=2
    ),
    "top_k_gate": of(language.top_k_gate, scores=draw(3, 4), k=2),
    "MixtureOfExperts": of(language.MixtureOfExperts, d_model=4, d_ff=8, n_experts=3, k=1),
    "mean_pooling": of(encoders_and_vision.mean_pooling, x=draw(2, 3, 12), mask=SEEN),
    "attention_pooling": of(
        encoders_and_vision.attention_pooling, x=draw(2, 3, 12), query=draw(12), mask=SEEN
    ),
    "HierarchicalAttention": of(encoders_and_vision.HierarchicalAttention, d_model=4),
    "HierarchicalAttention.forward": of_module(
        lambda: encoders_and_vision.HierarchicalAttention(12),
        x=draw(1, 2, 3, 12),
        mask=SEEN.unsqueeze(0),
    ),
    "EncoderClassifier": of(
        encoders_and_vision.EncoderClassifier, n_classes=4, max_length=5, **STACK
    ),
    "EncoderClassifier.encode": of_module(
        lambda: encoders_and_vision.EncoderClassifier(4, 5, **SIZE, n_layers=1),
        "encode",
        x=draw(2, 3, 12),
        mask=SEEN,
    ),
    "EncoderClassifier.forward": of_module(
        lambda: encoders_and_vision.EncoderClassifier(4, 5, **SIZE, n_layers=1),
        x=draw(2, 3, 12),
        mask=SEEN,
    ),
    "mask_tokens": of(
        encoders_and_vision.mask_tokens, tokens=IDS, noise=draw(*IDS.shape), share=0.5, mask_id=1
    ),
    "patchify": of(encoders_and_vision.patchify, images=draw(2, 1, 4, 6), size=2),
    "VisionTransformer": of(
        encoders_and_vision.VisionTransformer,
        image_size=(4, 6),
        patch_size=2,
        channels=1,
        n_classes=4,
        **STACK,
    ),
    "blank_each_patch": of(encoders_and_vision.blank_each_patch, images=draw(2, 1, 4, 6), size=2),
    "BertEmbeddings": of(
        published_model.BertEmbeddings, vocab_size=9, max_length=5, d_model=4, n_types=2
    ),
    "bert_layer": of(published_model.bert_layer, d_model=12, n_heads=1, d_ff=8),
    "BertLayers": of(published_model.BertLayers, **STACK),
    "BertLayers.forward": of_module(
        lambda: published_model.BertLayers(12, 1, 8, n_layers=1), x=draw(2, 3, 12), mask=SEEN
    ),
    "PublishedEncoder": of(published_model.PublishedEncoder, vocab_size=9, max_length=5, **STACK),
    "rms_norm": of(modern_decoder.rms_norm, x=draw(2, 4), weight=torch.ones(4), eps=1e-6),
    "swiglu_units": of(modern_decoder.swiglu_units, d_ff=10, multiple=2),
    "SwiGLU": of(modern_decoder.SwiGLU, d_model=4, d_ff=6),
    "ModernAttention": of(
        modern_decoder.ModernAttention, d_model=12, n_heads=1, n_kv_heads=1, window=2
    ),
    "ModernDecoderLayer": of(
        modern_decoder.ModernDecoderLayer, d_model=12, n_heads=1, n_kv_heads=1, d_ff=8, window=2
    ),
    "ModernDecoder": of(
        modern_decoder.ModernDecoder,
        vocab_size=9,
        d_model=12,
        n_heads=1,
        n_kv_heads=1,
        d_ff=8,
        n_layers=1,
        window=2,
    ),
    "generate_with_cache": of(
        modern_decoder.generate_with_cache,
        model=lambda tokens, past, real: (_logits(tokens), past),
        tokens=IDS,
        choose=_best,
        max_length=3,
    ),
    "cache_bytes": of(
        modern_decoder.cache_bytes,
        T=5,
        n_layers=1,
        n_kv_heads=1,
        d_head=4,
        window=3,
        bytes_per_number=2,
    ),
    "pair_up": of(modern_decoder.pair_up, weight=draw(12, 4), n_heads=1),
    "newton_schulz": of(modern_decoder.newton_schulz, matrix=draw(3, 4), steps=2),
    "muon_step": of(
        modern_decoder.muon_step,
        parameter=draw(3, 4),
        gradient=draw(3, 4),
        m=draw(3, 4),
        learning_rate=0.1,
        momentum=0.9,
        weight_decay=0.1,
    ),
    "sentence_vectors": of(published_model.sentence_vectors, hidden=draw(2, 3, 12), mask=SEEN),
    "search": of(published_model.search, queries=draw(2, 12), passages=draw(3, 12), k=2, block=2),
    "role_scores": of(
        interpretability.role_scores, weights=draw(2, 3, 5, 5), role=ALL.expand(2, 5, 5)
    ),
    "Explained.log_p": of_module(
        lambda: looks.Explained(_transformer()),
        "log_p",
        source=IDS,
        target=IDS,
        source_mask=SOURCE_MASK,
    ),
    "Explained.gates": of_module(lambda: looks.Explained(_transformer()), "gates", B=2),
    "ActivationPatching.forward": of_module(
        lambda: looks.ActivationPatching(_transformer()),
        source=IDS,
        target=IDS,
        other=IDS,
        places=IDS > 3,
    ),
    "null_space_dimension": of(looks.null_space_dimension, values=draw(5, 2), tolerance=1e-5),
    "null_space": of(other_weights.null_space, values=draw(5, 2), tolerance=1e-5),
    "effective_attention": of(
        other_weights.effective_attention, weights=draw(2, 5), values=draw(5, 3), tolerance=1e-5
    ),
    "token_identifiability": of(
        looks.token_identifiability, hidden=draw(2, 3, 4), inputs=draw(2, 3, 4), mask=SEEN
    ),
    "tile_scores": of(efficient_attention.tile_scores, q=Q, k=Q, i=0, j=0, block=2),
    "flash_attention": of(efficient_attention.flash_attention, q=Q, k=Q, v=Q, block=2),
    "flash_attention_backward": of(
        efficient_attention.flash_attention_backward,
        q=Q,
        k=Q,
        v=Q,
        context=Q,
        lse=draw(2, 5).abs() + 99,
        grad_context=Q,
        block=2,
    ),
    "causal_linear_attention": of(
        recall.causal_linear_attention, features=torch.exp, q=Q, k=Q, v=Q, block=2
    ),
    "window_in_blocks": of(recall.window_in_blocks, q=Q, k=Q, v=Q, window=2),
    "grouped_query_attention": of(
        efficient_attention.grouped_query_attention, q=HEADS, k=HEADS, v=HEADS, mask=ALL
    ),
    "kv_cache_bytes": of(
        recall.kv_cache_bytes, T=3, n_layers=2, n_kv_heads=2, d_head=4, bytes_per_number=2
    ),
    "operations_per_byte": of(
        efficient_attention.operations_per_byte,
        n_new=2,
        n_cached=3,
        batch=2,
        d_model=8,
        group=1,
        bytes_per_number=2,
    ),
    # What lessons stand on, and training
    "Sublayers": of(multi_head_attention.Sublayers, **LAYER),
    "in_words": of(in_words, number=231, language="en"),
    "numbers": of(numbers, n_train=3, n_test=2, digits=1),
    "keywords.make": of(keywords.make, count=2, length=9, draw=torch.Generator()),
    "recall.make": of(recall.make, count=2, pairs=3, draw=torch.Generator()),
    "documents.make": of(documents.make, n=2, seed=0),
    "shuffle_patches": of(digits.shuffle_patches, images=draw(2, 1, 8, 8), size=2, seed=0),
    "bootstrap": of(rank_agreement.bootstrap, numbers=[1.0, 2.0], draws=9, seed=0),
    "offset_role": of(interpretability.offset_role, mask=ALL[None], offset=-1),
    "roles.uniform": of(interpretability.uniform, mask=ALL[None]),
    "ByteDropout": of(acceleration.ByteDropout, p=0.1),
    "attend_in_float32": of(
        acceleration.attend_in_float32, q=HEADS, k=HEADS, v=HEADS, mask=ALL, dropout=0.0
    ),
    "running_mean": of(curves.running_mean, values=[1.0, 2.0], width=2),
}
