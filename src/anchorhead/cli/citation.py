"""How to cite the software and the paper."""

SOFTWARE = """@software{{anchorhead,
  title   = {{Anchorhead: continuous functions as attention-only networks, with a proven error}},
  author  = {{{{The Anchorhead developers}}}},
  version = {{{version}}},
  year    = {{2026}},
}}"""

PAPER = """@article{hu2025universal,
  title         = {Universal Approximation with Softmax Attention},
  author        = {Hu, Jerry Yao-Chieh and Liu, Hude and Chen, Hong-Yu and Wu, Weimin and Liu, Han},
  journal       = {arXiv preprint arXiv:2504.15956},
  eprint        = {2504.15956},
  archivePrefix = {arXiv},
  year          = {2025},
}"""


def bibtex(version: str) -> str:
    """Both entries."""
    return f"{SOFTWARE.format(version=version)}\n\n{PAPER}"
