# SPDX-License-Identifier: BSD-3-Clause
"""HPC Challenge: its input file, and what its output file proves. Pure."""

import re

# The part of the name of each test that its sections have in the output file.
SECTIONS = ("PTRANS", "HPL", "MPIRandomAccess", "StarDGEMM", "StarSTREAM",
            "MPIFFT", "LatencyBandwidth")

INPUT = """\
HPLinpack benchmark input file
a small problem, for emulated processors
HPL.out      output file name (if any)
8            device out (6=stdout,7=stderr,file)
1            # of problems sizes (N)
{size}       Ns
1            # of NBs
{block}      NBs
0            PMAP process mapping (0=Row-,1=Column-major)
1            # of process grids (P x Q)
1            Ps
{ranks}      Qs
16.0         threshold
1            # of panel fact
2            PFACTs (0=left, 1=Crout, 2=Right)
1            # of recursive stopping criterium
4            NBMINs (>= 1)
1            # of panels in recursion
2            NDIVs
1            # of recursive panel fact.
1            RFACTs (0=left, 1=Crout, 2=Right)
1            # of broadcast
1            BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)
1            # of lookahead depth
1            DEPTHs (>=0)
2            SWAP (0=bin-exch,1=long,2=mix)
64           swapping threshold
0            L1 in (0=transposed,1=no-transposed) form
0            U  in (0=transposed,1=no-transposed) form
1            Equilibration (0=no,1=yes)
8            memory alignment in double (> 0)
--- separator ---
0            Number of additional problem sizes for PTRANS
0            values of N
0            number of additional blocking sizes for PTRANS
0            values of NB
"""


def input_text(ranks, size=180, block=30):
    """hpccinf.txt for so many ranks."""
    return INPUT.format(ranks=ranks, size=size, block=block)


def section(text):
    """The section that an output file has come to, or ""."""
    begun = re.findall(r"^Begin of (\w+) section", text, re.MULTILINE)
    return begun[-1] if begun else ""


class Verdict:
    """What HPC Challenge says about its own results."""

    def __init__(self, text):
        # "0 tests completed and failed residual checks" is no failure.
        self.problems = [
            line.strip() for line in text.splitlines()
            if re.search(r"\bFAILED\b|Failed Validation|"
                         r"^ *[1-9]\d* tests completed and failed|"
                         r"^Node\(s\) with error [1-9]|"
                         r"^Found [1-9]\d* errors", line)]
        if not re.search(r"^Success=1$", text, re.MULTILINE):
            self.problems.append("no Success=1")
        for name in SECTIONS:
            if f"End of {name} section" not in text:
                self.problems.append(f"{name} did not end")
        self.residual = re.search(r"^\|\|Ax-b.*PASSED$", text, re.MULTILINE)
        if not self.residual:
            self.problems.append("HPL's residual check did not pass")
        self.passed = len(re.findall(r"\bPASSED\b|\(passed\)|"
                                     r"Node\(s\) with error 0\b", text))
