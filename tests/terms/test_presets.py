"""Sizes that one number cannot tell: shapes, how they are written, and read."""

import pytest

from fwbench.errors import DeclarationError, UsageError
from fwbench.terms.presets import Form, Shape, Sizes
from support.tables import tabled

_PRODUCT = Form("{m}x{n}x{k}")
_IMAGES = Form("n{n}h{h}w{w}c{c}")


def test_a_shape_is_its_numbers_by_name() -> None:
    """In the order of the text, which is the shape's."""
    shape = _PRODUCT.read("1760x16x1")
    assert dict(shape) == {"m": 1_760, "n": 16, "k": 1}
    assert [*shape.values()] == [1_760, 16, 1]
    assert (str(shape), repr(shape), shape.form) == ("1760x16x1", "Shape('1760x16x1')", _PRODUCT)


def test_shapes_are_equal_by_their_text() -> None:
    assert _PRODUCT.read("2x3x4") == Form("{a}x{b}x{c}").read("2x3x4") != _PRODUCT.read("2x3x5")
    assert len({_PRODUCT.read("2x3x4"), _PRODUCT.read("2x3x4")}) == 1
    assert _PRODUCT.read("2x3x4") != "2x3x4"


@tabled
def test_a_text_of_another_form_is_refused(text: str) -> None:
    """Numbers are positive and have no zeros before them: a shape has one text."""
    assert _PRODUCT.shape(text) is None
    with pytest.raises(UsageError, match=r"does not have the form \{m\}x\{n\}x\{k\}"):
        _PRODUCT.read(text)


@pytest.mark.parametrize(
    "template", ["", "x", "{m}{n}", "{m}-{n}", "{m}x{}", "{m}x{n", "{1}", "{M}x{n}", "{m}x{n}X"]
)
def test_a_form_that_cannot_be_read_back_is_refused(template: str) -> None:
    """Numbers that follow each other, hyphens, and names that are none."""
    with pytest.raises(DeclarationError, match="cannot be read back"):
        Form(template)


def test_sizes_of_a_form() -> None:
    sizes = _IMAGES.sizes(quick=("n8h4w4c2",), full=("n8h4w4c2", "n8h64w64c2"))
    assert [isinstance(size, Shape) for size in sizes.full] == [True, True]
    assert [str(size) for size in Sizes(quick=(8,)).preset("full")] == ["8"]
    assert sizes.preset("paper") == ()
    with pytest.raises(UsageError, match="'n8h4' does not have the form"):
        _IMAGES.sizes(quick=("n8h4",))
