"""Every example of the documents prints what they say."""
import doctest
import pathlib
import re

import pytest

import tenon

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("page", ["python.md", "gallery.md"])
def test_docs(page):
    tenon.seed(1)
    failed, tried = doctest.testfile(
        str(ROOT / "docs" / page), module_relative=False,
        optionflags=doctest.NORMALIZE_WHITESPACE)
    assert failed == 0 and tried > 30


def test_notebooks():
    """explain() is text, and in a notebook a page with all levels."""
    p = tenon.program("program { x: f32[2,3] y = lt(x, x) return y }")
    text = tenon.explain(p)
    assert isinstance(text, str) and "MapStmt" in text
    page = text._repr_html_()
    assert page.count("<details>") == 7 and "<summary>c</summary>" in page
    assert "&lt;" in page and "y = lt(x, x)" in page
    f = tenon.compile(lambda x: (x * x).sum())
    f(tenon.ones([3]))
    page = tenon.explain(f)._repr_html_()
    assert "<summary>function</summary>" in page and "<summary>kern</summary>" in page
    step = tenon.compile(lambda x: tenon.while_loop(lambda i: i < 3, lambda i: i + 1, x))
    step(tenon.tensor(0)).item()
    assert "<summary>function</summary>" in tenon.explain(step)._repr_html_()


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


def test_model_in_scopes():
    """The weights of a model are made by its first call, and outlive what is around it."""
    path = ROOT / "tests" / "golden" / "cli" / "data" / "train" / "small.onnx"
    x = tenon.ones([2, 1, 4, 4])
    want = tenon.onnx.load(path, dims={"x[0]": 2})(x)[0].tolist()
    scoped = tenon.onnx.load(path, dims={"x[0]": 2})
    with tenon.step():
        assert scoped(x)[0].tolist() == want
    assert scoped(x)[0].tolist() == want
    assert scoped(x)[0].tolist() == want
    traced = tenon.onnx.load(path, dims={"x[0]": 2})
    f = tenon.compile(lambda a: traced(a)[0])
    for _ in range(3):
        assert f(x).tolist() == want
    assert traced(x)[0].tolist() == want
    with tenon.no_grad():
        assert traced(x)[0].tolist() == want
