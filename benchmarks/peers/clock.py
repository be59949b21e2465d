"""Wall time of work on a CPU or a GPU."""
import time

import torch


def seconds(work, device):
    """Of work(), what it leaves running on the GPU included."""
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    wait()
    start = time.perf_counter()
    work()
    wait()
    return time.perf_counter() - start
