#!/usr/bin/env python3
"""Compares microgpt.py with this program on this machine: python3 tests/bench/compare.py microgpt.py

Both train on the shipped names. Prints the time of a run (of this program, the best of seven), the number of lines to
read, and whether standard output is the same, byte for byte.
"""
import os
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def run(command, folder):
    start = time.perf_counter()
    output = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, check=True).stdout
    return time.perf_counter() - start, output


GIST = "https://gist.github.com/karpathy/8627fe009c40f57531cb18360106ce95"
if len(sys.argv) != 2:
    sys.exit(f"usage: python3 tests/bench/compare.py microgpt.py\nmicrogpt.py is at {GIST}")
if not os.path.isfile(sys.argv[1]):
    sys.exit(f"{sys.argv[1]}: no such file; microgpt.py is at {GIST}")
if not os.path.isfile(os.path.join(ROOT, "microgpt")):
    sys.exit("microgpt: not built yet; run make first")
theirs = os.path.abspath(sys.argv[1])
with tempfile.TemporaryDirectory() as folder:
    shutil.copy(os.path.join(ROOT, "data", "names.txt"), os.path.join(folder, "input.txt"))     # the file it reads
    runs = [run([os.path.join(ROOT, "microgpt")], folder) for _ in range(7)]
    their_time, their_output = run([sys.executable, theirs], folder)
our_time, our_output = min(runs)
with open(theirs, encoding="utf-8") as file:
    their_lines = len(file.readlines())
our_lines = 0
for name in "microgpt.c", "autograd.h", "autograd.c":      # the files to read
    with open(os.path.join(ROOT, name), encoding="utf-8") as file:
        our_lines += len(file.readlines())
same = our_output == their_output
print(f"{'':24}{'microgpt.py':>12}{'this program':>14}")
print(f"{'seconds per run':24}{their_time:12.1f}{our_time:14.3f}   {their_time / our_time:.0f} times faster")
print(f"{'lines, with comments':24}{their_lines:12}{our_lines:14}")
print(f"{'standard output':24}{len(their_output):12}{len(our_output):14}   {'the same bytes' if same else 'DIFFERENT'}")
sys.exit(not same)
