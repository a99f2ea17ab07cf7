"""OpenBLAS, which NumPy and PyTorch use for products of matrices, uses its slowest kernels, Prescott's, on processors
newer than itself. choose_kernels() tells it what this one can do, before it is loaded."""
import os
import subprocess
import sys


def choose_kernels(module):
    """For the OpenBLAS of a module that is not imported yet."""
    if "OPENBLAS_CORETYPE" in os.environ or not os.path.exists("/proc/cpuinfo"):
        return
    said = subprocess.run([sys.executable, "-c", "import " + module], env=dict(os.environ, OPENBLAS_VERBOSE="2"),
                          capture_output=True, text=True, check=False)
    with open("/proc/cpuinfo", encoding="utf-8") as cpuinfo:
        flags = set(cpuinfo.read().split())
    core = "SkylakeX" if {"avx512f", "avx512dq", "avx512vl"} <= flags else "Haswell" if "avx2" in flags else None
    if core and "Core: Prescott" in said.stderr + said.stdout:
        os.environ["OPENBLAS_CORETYPE"] = core
