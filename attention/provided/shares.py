"""Two or more processes train on one batch, each on a share: `torchrun` starts them.

    torchrun --nproc-per-node 2 -m attention.provided.shares

The first process then takes the whole batch alone, and prints how far the gradients are apart.
"""

from torch import Tensor, distributed

from attention.provided import data, trainings
from attention.provided.data import PAD


def apart(one: list[Tensor], other: list[Tensor]) -> float:
    """Return the largest difference between two lists of tensors, over the largest number."""
    largest = max(x.abs().max().item() for x in other)
    return max((x - y).abs().max().item() for x, y in zip(one, other, strict=True)) / largest


def main() -> None:
    """Join the gradients of all processes in two ways, and compare both with one process."""
    distributed.init_process_group("gloo")
    rank, world = distributed.get_rank(), distributed.get_world_size()
    corpus = data.numbers()
    model = trainings.fresh(corpus)
    pairs = sorted(corpus.train[:10] + corpus.train[-10:], key=lambda pair: len(pair[2]))
    per_process = -(-len(pairs) // world)
    share = corpus.batch(pairs[rank * per_process :][:per_process])
    tokens = (share.target != PAD).sum()
    total = tokens.clone()
    distributed.all_reduce(total)  # the sum over all processes, in place
    own = trainings.gradients_of(model, share)
    weighted = [gradient * tokens / total for gradient in own]
    plain = [gradient / world for gradient in own]
    for gradient in weighted + plain:
        distributed.all_reduce(gradient)
    # One write, so that the two processes do not write into each other's line.
    print(f"process {rank} of {world}: {tokens} of {total} tokens\n", end="", flush=True)
    distributed.barrier()
    if rank == 0:
        whole = trainings.gradients_of(model, corpus.batch(pairs))
        print(f"each weighted with its tokens: {apart(weighted, whole):.0e} from one process")
        print(f"plain mean of the processes:   {apart(plain, whole):.0e} from one process")
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
