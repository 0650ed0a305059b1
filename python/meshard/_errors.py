"""The exceptions of meshard: one class for each kind of failure."""

from . import _meshard

__all__ = ["Error", "CancelledError", "InvalidArgumentError", "DeadlineExceededError", "NotFoundError",
           "AlreadyExistsError", "PermissionDeniedError", "ResourceExhaustedError",
           "FailedPreconditionError", "AbortedError", "OutOfRangeError", "UnimplementedError",
           "InternalError", "UnavailableError", "DataLossError"]


class Error(Exception):
    """A failure inside meshard, the compiler or the plugin.

    `filename` and `lineno` are the user's source line, and `message` is the text without it.
    """

    message: str
    filename: str | None
    lineno: int | None

    def __str__(self):
        # That of OSError, which some classes are too, would show `filename` instead.
        return Exception.__str__(self)


class CancelledError(Error):
    """The work was cancelled."""


class InvalidArgumentError(Error, ValueError):
    """An argument that is wrong, whatever the state of the program."""


class DeadlineExceededError(Error, TimeoutError):
    """A time limit has passed."""


class NotFoundError(Error, LookupError):
    """A file, a plugin or a name does not exist."""


class AlreadyExistsError(Error):
    """What should be created exists already."""


class PermissionDeniedError(Error, PermissionError):
    """The process may not do this."""


class ResourceExhaustedError(Error, MemoryError):
    """There is not enough memory, on the host or on a device."""


class FailedPreconditionError(Error, RuntimeError):
    """The state does not allow this: a donated value is used, a traced value is read."""


class AbortedError(Error):
    """Another process failed or disagreed."""


class OutOfRangeError(Error, IndexError):
    """An index or a dimension outside its range."""


class UnimplementedError(Error, NotImplementedError):
    """meshard or the plugin cannot do this."""


class InternalError(Error, RuntimeError):
    """A mistake inside meshard. Please report it."""


class UnavailableError(Error):
    """A process or a service cannot be reached."""


class DataLossError(Error):
    """Data that cannot be read: a damaged file, an unknown format."""


# The numbers of the codes in meshard/base/error.h; 0 is InternalError of meshard itself.
_CLASSES = {
    0: InternalError, 1: CancelledError, 2: Error, 3: InvalidArgumentError, 4: DeadlineExceededError, 5: NotFoundError,
    6: AlreadyExistsError, 7: PermissionDeniedError, 8: ResourceExhaustedError, 9: FailedPreconditionError,
    10: AbortedError, 11: OutOfRangeError, 12: UnimplementedError, 13: InternalError, 14: UnavailableError,
    15: DataLossError, 16: PermissionDeniedError,
}
for _code, _class in _CLASSES.items():
    _class.__module__ = "meshard"
    _meshard.set_error_class(_code, _class)
