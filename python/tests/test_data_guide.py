"""The blocks of docs/guides/python-data.md run."""

import pathlib
import re

import pytest

GUIDE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "guides" / "python-data.md"


@pytest.mark.skipif(not GUIDE.exists(), reason="not in a clone")
def test_blocks_of_the_guide(capsys):
    blocks = re.findall(r"^```python\n(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) > 5
    names = {}
    for block in blocks:
        exec(compile(block, str(GUIDE), "exec"), names)  # noqa: S102
    printed = capsys.readouterr().out
    assert "0 (slice(0, 2, None), slice(0, 16, None)) (2, 16)" in printed and "order [1, 2, 0]" in printed
