"""The same steps in PyTorch: how long they take there, and whether the losses are the same.

    python3 tests/bench/bench_torch.py [PROGRAM]

Double precision, documents that fill the block; on one thread, and on all processors. Both start from the same
parameters, see the same documents in the same order and take the same steps of Adam; the best round of each counts, by
the clock on the wall. The last column has the better of PyTorch's two. Skipped where there is no torch.
"""
import math
import os
import random
import subprocess
import sys
import tempfile
import time

import openblas

# A process has one number of threads: torch.set_num_threads() alone leaves OpenBLAS a second one.
PROCESSORS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
THREADS = int(os.environ.get("BENCH_THREADS", "0"))
openblas.prepare("torch", THREADS or 1)
try:
    import torch
    import torch.nn.functional as F
except ImportError:
    print("bench_torch: skipped: this Python has no torch")
    sys.exit(0)

# layers, n_embd, heads, block, steps of a round
CASES = [(2, 64, 4, 128, 40), (4, 128, 4, 128, 6), (4, 256, 8, 128, 3)]
WARM, ROUNDS, LR, BETAS, STD = 2, 5, 0.01, (0.85, 0.99), 0.08
PROGRAM = sys.argv[1] if len(sys.argv) > 1 else "./microgpt"


def write_documents(path, length):
    """Lines of lower-case letters that are longer than the block."""
    source = random.Random(1)
    with open(path, "w", encoding="ascii") as file:
        for _ in range(50):
            file.write("".join(source.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(length + 10)) + "\n")


class Model:
    """microgpt, all positions of a document at once."""

    def __init__(self, path, n_layer, n_embd, n_head, block_size):
        self.n_layer, self.n_head, self.block_size = n_layer, n_head, block_size
        random.seed(42)
        with open(path, encoding="ascii") as file:
            self.docs = file.read().split()
        random.shuffle(self.docs)
        uchars = sorted(set("".join(self.docs)))
        self.token = {c: i for i, c in enumerate(uchars)}
        self.bos = len(uchars)
        shapes = [(self.bos + 1, n_embd), (block_size, n_embd), (self.bos + 1, n_embd)]
        for _ in range(n_layer):
            shapes += [(n_embd, n_embd)] * 4 + [(4 * n_embd, n_embd), (n_embd, 4 * n_embd)]
        self.params = [torch.tensor([random.gauss(0, STD) for _ in range(rows * cols)], dtype=torch.float64)
                       .view(rows, cols).requires_grad_() for rows, cols in shapes]
        self.adam = torch.optim.Adam(self.params, lr=LR, betas=BETAS, eps=1e-8, foreach=True)
        self.mask = torch.full((block_size, block_size), -math.inf, dtype=torch.float64).triu(1)

    def loss(self, doc):
        """The mean loss of the document's first predictions."""
        tokens = [self.bos] + [self.token[c] for c in doc] + [self.bos]
        n = min(self.block_size, len(tokens) - 1)
        ids, targets = torch.tensor(tokens[:n]), torch.tensor(tokens[1:n + 1])
        wte, wpe, lm_head = self.params[:3]
        x = rmsnorm(wte[ids] + wpe[:n])
        for i in range(self.n_layer):
            wq, wk, wv, wo, fc1, fc2 = self.params[3 + 6 * i:9 + 6 * i]
            y = rmsnorm(x)
            q, k, v = ((y @ w.T).view(n, self.n_head, -1).transpose(0, 1) for w in (wq, wk, wv))
            scores = q @ k.transpose(1, 2) / math.sqrt(q.shape[2]) + self.mask[:n, :n]
            x = x + (scores.softmax(2) @ v).transpose(0, 1).reshape(n, -1) @ wo.T
            x = x + F.relu(rmsnorm(x) @ fc1.T) @ fc2.T
        return F.cross_entropy(x @ lm_head.T, targets)

    def steps(self, first, last, total):
        """Trains from step `first` up to `last`; returns the losses."""
        losses = []
        for step in range(first, last):
            self.adam.param_groups[0]["lr"] = LR * (1 - step / total)
            self.adam.zero_grad(set_to_none=True)
            loss = self.loss(self.docs[step % len(self.docs)])
            loss.backward()
            self.adam.step()
            losses.append(loss.item())
        return losses


def rmsnorm(x):
    return x * (x.square().mean(1, keepdim=True) + 1e-5).rsqrt()


def torch_rounds(path, case, threads):
    """In a process of its own: the seconds per step of each round, then the losses of the first."""
    torch.set_num_threads(threads)
    n_layer, n_embd, n_head, block_size, steps = case
    model = Model(path, n_layer, n_embd, n_head, block_size)
    total, seconds = WARM + steps, []
    losses = model.steps(0, WARM, total)
    for k in range(ROUNDS):
        start = time.perf_counter()
        more = model.steps(WARM, total, total)       # after the first round, for the time alone
        seconds.append((time.perf_counter() - start) / steps)
        losses += more if k == 0 else []
    print(*seconds, *losses)


def run_torch(path, case, threads):
    said = subprocess.run([sys.executable, __file__, "--rounds", path, *map(str, case)], check=True, text=True,
                          stdout=subprocess.PIPE, env=dict(os.environ, BENCH_THREADS=str(threads))).stdout
    figures = [float(word) for word in said.split()]
    return figures[:ROUNDS], figures[ROUNDS:]


def run_program(path, case, threads, log):
    """The same: a round is a run of all steps, less one of the first few."""
    n_layer, n_embd, n_head, block_size, steps = case
    seconds = {WARM: [], WARM + steps: []}
    for n in [WARM, WARM + steps] * ROUNDS:
        start = time.perf_counter()
        subprocess.run([PROGRAM, "--data", path, "--n-layer", str(n_layer), "--n-embd", str(n_embd), "--n-head", str(n_head),
                        "--block-size", str(block_size), "--steps", str(n), "--samples", "0", "--threads", str(threads),
                        "--quiet", "--log", log], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        seconds[n].append(time.perf_counter() - start)
    with open(log, encoding="ascii") as file:
        losses = [float(line.split(",")[1]) for line in file.read().split()[1:]]
    return [(long - min(seconds[WARM])) / steps for long in seconds[WARM + steps]], losses


def main():
    counts = [1, PROCESSORS] if PROCESSORS > 1 else [1]
    worst, slowest = 0, []
    heads = "".join(f"{name + ', ' + str(n):>14}" for name in ("microgpt", "PyTorch") for n in counts)
    print(f"\n{'training, full documents':<40}{heads}{'microgpt':>10}  losses differ by")
    print(f"{'':<40}{'ms per step, on so many threads':>{14 * 2 * len(counts)}}{'/ PyTorch':>10}")
    with tempfile.TemporaryDirectory() as folder:
        path, log = os.path.join(folder, "docs.txt"), os.path.join(folder, "log.csv")
        for case in CASES:
            n_layer, n_embd, n_head, block_size, _ = case
            write_documents(path, block_size)
            own = [run_program(path, case, n, log) for n in counts]
            theirs = [run_torch(path, case, n) for n in counts]
            apart = max(abs(a - b) for a, b in zip(own[0][1], theirs[0][1]))
            worst = max(worst, apart if len(own[0][1]) == len(theirs[0][1]) else math.inf)
            best = [min(seconds) for seconds, _ in own + theirs]
            slowest += [max(seconds) / min(seconds) for seconds, _ in own + theirs]
            name = f"n_embd {n_embd}, {n_head} heads, {n_layer} layers, block {block_size}"
            ratio = min(best[:len(counts)]) / min(best[len(counts):])
            print(f"{name:<40}{''.join(f'{1e3 * s:14.2f}' for s in best)}{ratio:10.2f}  {apart:.0e}", flush=True)
    print(f"Best of {ROUNDS} rounds, double precision; PyTorch {torch.__version__}. "
          f"Noise: the slowest round took up to {max(slowest):.2f} times as long as the best.")
    return 0 if worst < 1e-9 else 1


if sys.argv[1:2] == ["--rounds"]:
    torch_rounds(sys.argv[2], [int(word) for word in sys.argv[3:]], THREADS)
else:
    sys.exit(main())
