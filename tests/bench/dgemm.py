"""Billions of multiply-adds per second of NumPy's product of matrices, dgemm: double precision, on one thread."""
import os
import sys
import time

from openblas import choose_kernels

for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ[library + "_NUM_THREADS"] = "1"
choose_kernels("numpy")
try:
    import numpy
except ImportError:
    sys.exit(1)
SIZE = 600
a, b, c = numpy.random.rand(SIZE, SIZE), numpy.random.rand(SIZE, SIZE), numpy.empty((SIZE, SIZE))
best = float("inf")
for _ in range(20):
    start = time.perf_counter()
    numpy.dot(a, b, out=c)
    best = min(best, time.perf_counter() - start)
print(f"{SIZE**3 / best / 1e9:.2f}")
