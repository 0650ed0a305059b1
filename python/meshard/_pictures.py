"""Pictures of meshes, shardings and layouts, for terminals and notebooks."""

from ._meshard import Layout, Mesh, Sharding, Tensor, draw

__all__ = ["Picture", "picture"]


class Picture(str):
    """A picture: text of box characters, as which it prints, and an SVG image, as which notebooks show it."""

    svg: str

    def __new__(cls, text, svg):
        made = super().__new__(cls, text)
        made.svg = svg
        return made

    def __repr__(self):
        return str(self)

    def __getnewargs__(self):
        return str(self), self.svg

    def _repr_html_(self):
        return self.svg


def picture(of, shape=None, *, group_by=()):
    """Draws the device ids of a mesh, the tiles of a sharding, or the values of a layout.

    Of a mesh, each device has its own color; the devices of each group along the axes `group_by` share one. Of a
    sharding, each cell is a tile with the ids of the devices that hold it; with the `shape` of a tensor also the
    indices that the tile holds. Of a sharded tensor, the same with its shape.

    Error: more than 4096 devices or values; a tensor without a sharding.
    """
    if isinstance(of, Tensor):
        sharding = of.sharding if of.sharding is not None else of.stored_sharding
        if sharding is None:
            raise ValueError("picture of a tensor that has no sharding")
        return Picture(*draw(sharding, of.shape))
    if isinstance(of, Mesh):
        return Picture(*draw(of, group_by))
    if isinstance(of, Sharding):
        return Picture(*(draw(of) if shape is None else draw(of, shape)))
    if isinstance(of, Layout):
        return Picture(*draw(of))
    raise TypeError(f"picture draws a mesh, a sharding, a layout or a sharded tensor, not {type(of).__name__}")


def _html(value):
    try:
        return picture(value).svg
    except Exception:  # too large to draw
        import html

        return f"<code>{html.escape(str(value))}</code>"


for _type in (Mesh, Sharding, Layout):
    _type._repr_html_ = _html
