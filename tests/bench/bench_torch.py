"""The same steps in PyTorch: how long they take there, and whether the losses are the same.

    python3 tests/bench/bench_torch.py [PROGRAM [ROUNDS]]

Double precision, one thread, documents that fill the block. Both start from the same parameters, see the same documents
in the same order and take the same steps of Adam, in turn; the best round of each counts, in the time that the process
has worked. Skipped where there is no torch.
"""
import math
import os
import random
import resource
import subprocess
import sys
import tempfile
import time

for library in ("OMP", "OPENBLAS", "MKL"):       # torch.set_num_threads() alone leaves OpenBLAS a second thread
    os.environ[library + "_NUM_THREADS"] = "1"
try:
    import torch
    import torch.nn.functional as F
except ImportError:
    print("bench_torch: skipped: this Python has no torch")
    sys.exit(0)

# layers, n_embd, heads, block, steps of a round
CASES = [(2, 64, 4, 128, 40), (4, 128, 4, 128, 6), (4, 256, 8, 128, 3)]
WARM, LR, BETAS, STD = 2, 0.01, (0.85, 0.99), 0.08


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


def run_program(program, path, case, steps, log):
    """The seconds of work that `steps` steps are, with all that is around them."""
    n_layer, n_embd, n_head, block_size, _ = case
    start = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([program, "--data", path, "--n-layer", str(n_layer), "--n-embd", str(n_embd),
                    "--n-head", str(n_head), "--block-size", str(block_size), "--steps", str(steps), "--samples", "0",
                    "--quiet", "--log", log], check=True, stdout=subprocess.DEVNULL)
    end = resource.getrusage(resource.RUSAGE_CHILDREN)
    return end.ru_utime - start.ru_utime + end.ru_stime - start.ru_stime


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else "./microgpt"
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    torch.set_num_threads(1)
    worst = 0
    print(f"\n{'training, full documents':<38} {'microgpt':>12} {'PyTorch':>12} {'ratio':>7}  losses apart")
    with tempfile.TemporaryDirectory() as folder:
        path, log = os.path.join(folder, "docs.txt"), os.path.join(folder, "log.csv")
        for case in CASES:
            n_layer, n_embd, n_head, block_size, steps = case
            write_documents(path, block_size)
            model = Model(path, n_layer, n_embd, n_head, block_size)
            total, losses = WARM + steps, model.steps(0, WARM, WARM + steps)
            short = long = other = math.inf
            for k in range(rounds):
                start = time.process_time()
                more = model.steps(WARM, total, total)       # after the first round, for the time alone
                other = min(other, (time.process_time() - start) / steps)
                losses += more if k == 0 else []
                short = min(short, run_program(program, path, case, WARM, log))
                long = min(long, run_program(program, path, case, total, log))
            with open(log, encoding="ascii") as file:
                seen = [float(line.split(",")[1]) for line in file.read().split()[1:]]
            apart = max(abs(a - b) for a, b in zip(losses, seen))
            worst = max(worst, apart if len(seen) == total else math.inf)
            own = (long - short) / steps
            name = f"n_embd {n_embd}, {n_head} heads, {n_layer} layers, block {block_size}"
            print(f"{name:<38} {1e3 * own:9.2f} ms {1e3 * other:9.2f} ms {own / other:7.2f}  {apart:.0e}", flush=True)
    print(f"Best of {rounds} rounds, one thread, double precision; PyTorch {torch.__version__}.")
    return 0 if worst < 1e-9 else 1


sys.exit(main())
