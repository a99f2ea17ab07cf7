"""OpenBLAS, which NumPy and PyTorch use for products of matrices, uses its slowest kernels, Prescott's, on processors
newer than itself. prepare() tells it what this one can do, before it is loaded.

    python3 tests/bench/openblas.py     billions of multiply-adds per second of NumPy's dgemm, on one thread
"""
import os
import subprocess
import sys
import time


def prepare(module, threads):
    """For the OpenBLAS, or another such library, of a module that is not imported yet."""
    for library in ("OMP", "OPENBLAS", "MKL"):
        os.environ[library + "_NUM_THREADS"] = str(threads)
    if "OPENBLAS_CORETYPE" in os.environ or not os.path.exists("/proc/cpuinfo"):
        return
    said = subprocess.run([sys.executable, "-c", "import " + module], env=dict(os.environ, OPENBLAS_VERBOSE="2"),
                          capture_output=True, text=True, check=False)
    with open("/proc/cpuinfo", encoding="utf-8") as cpuinfo:
        flags = set(cpuinfo.read().split())
    core = "SkylakeX" if {"avx512f", "avx512dq", "avx512vl"} <= flags else "Haswell" if "avx2" in flags else None
    if core and "Core: Prescott" in said.stderr + said.stdout:
        os.environ["OPENBLAS_CORETYPE"] = core


def dgemm(size=600):
    import numpy
    a, b, c = numpy.random.rand(size, size), numpy.random.rand(size, size), numpy.empty((size, size))
    best = float("inf")
    for _ in range(20):
        start = time.perf_counter()
        numpy.dot(a, b, out=c)
        best = min(best, time.perf_counter() - start)
    return size**3 / best / 1e9


if __name__ == "__main__":
    prepare("numpy", 1)
    print(f"{dgemm():.2f}")
