"""Every example of the documents prints what they say."""
import doctest
import pathlib
import re

import pytest

import tenon

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_docs():
    tenon.seed(1)
    failed, tried = doctest.testfile(
        str(ROOT / "docs" / "python.md"), module_relative=False,
        optionflags=doctest.NORMALIZE_WHITESPACE)
    assert failed == 0 and tried > 30


def test_readme(capsys):
    code = re.findall(r"```python\n(.*?)```", (ROOT / "python" / "README.md").read_text(),
                      re.S)
    assert code
    for block in code:
        exec(block, {})
    assert "tensor(f32[2,2]" in capsys.readouterr().out


def test_signatures():
    import inspect
    assert str(inspect.signature(tenon.ops.softmax)).startswith("(x, axis=")
    assert tenon.Tensor.__doc__ and tenon.Context.__doc__


def test_models(tmp_path):
    model = ROOT / "tests" / "golden" / "cli" / "data" / "train" / "small.onnx"
    x = tenon.ones([2, 1, 4, 4])
    known, open_ = tenon.onnx.load(model, dims={"x[0]": 2}), tenon.onnx.load(model)
    assert known.inputs[0][2] == (2, 1, 4, 4) and open_.inputs[0][2][0] == -1
    assert known.params
    (y,), (z,) = known(x), open_(x)
    assert y.shape == z.shape == (2, 3)
    for a, b in zip(y.tolist(), z.tolist()):
        assert a == pytest.approx(b)
    x.requires_grad_()
    known(x)[0].sum().backward()
    assert x.grad.shape == x.shape
    with pytest.raises(OSError):
        tenon.onnx.load(tmp_path / "none.onnx")
    (tmp_path / "bad.onnx").write_bytes(b"no model at all")
    with pytest.raises(tenon.Error):
        tenon.onnx.load(tmp_path / "bad.onnx")
    with pytest.raises(tenon.Error):
        tenon.onnx.load(model, dims={"nothing": 3})
