"""Scores and costs of translators as they were published, each with its source.

BLEU and training cost: Vaswani et al. (2017), table 2; data sizes: section 5.1. BLEU there is that
of newstest2014, case-sensitive, on the paper's own tokens: it is not sacrebleu's.
"""

from typing import NamedTuple

PAIRS = {"English to German": 4.5e6, "English to French": 36e6}  # sentence pairs of WMT 2014


class System(NamedTuple):
    """One row of the table: ``bleu`` on WMT 2014, and ``flops``, those of its training."""

    name: str
    bleu: float
    flops: float


TABLE_2 = {
    "English to German": [
        System("GNMT + RL", 24.6, 2.3e19),
        System("ConvS2S", 25.16, 9.6e18),
        System("MoE", 26.03, 2.0e19),
        System("GNMT + RL, ensemble", 26.30, 1.8e20),
        System("ConvS2S, ensemble", 26.36, 7.7e19),
        System("Transformer, base", 27.3, 3.3e18),
        System("Transformer, big", 28.4, 2.3e19),
    ],
    "English to French": [
        System("Deep-Att + PosUnk", 39.2, 1.0e20),
        System("GNMT + RL", 39.92, 1.4e20),
        System("ConvS2S", 40.46, 1.5e20),
        System("MoE", 40.56, 1.2e20),
        System("Deep-Att + PosUnk, ensemble", 40.4, 8.0e20),
        System("GNMT + RL, ensemble", 41.16, 1.1e21),
        System("ConvS2S, ensemble", 41.29, 1.2e21),
        System("Transformer, base", 38.1, 3.3e18),
        System("Transformer, big", 41.8, 2.3e19),
    ],
}
