"""How kernels are compiled: once per type, whole, cached on disk, without the GIL, no fast math.

A program is a kernel that Python calls, with all the kernels it calls. Numba would optimise and
emit each of these by itself and again inside every caller, and would wrap each for Python. Here a
kernel called by another is only translated; the one called from Python takes in everything below
it and is optimised once (docs/adr/0026). That is most of the time a first run takes.

Fast math would let the compiler reorder sums, and then the fused run and the step-by-step run
could differ in the last bit. Reference counting is off (`_nrt=False`): kernels allocate nothing,
and counting references to the arrays of a model would cost more than a step does. A kernel that
tries to allocate does not compile (docs/adr/0002).

Numba's cache notices a change of the file a function stands in, not of a function it calls in
another file. So the contents of all kernel files are part of a kernel's address in the cache
(docs/adr/0003), and files are named by that address: processes that compile at the same time do not
mistake one's code for the other's.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import math
import os
import pickle
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any, ClassVar

import numpy as np
from numba import config, types
from numba._dispatcher import compute_fingerprint
from numba.core import typed_passes, untyped_passes
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.registry import CPUDispatcher
from numba.core.runtime.nrt import rtsys
from numba.core.sigutils import normalize_signature

from windage.errors import InputError

PATIENCE = float(os.environ.get("WINDAGE_PATIENCE", "2"))
"""Seconds of plain Python that are spent on a kernel rather than several on compiling it."""

_OPTIONS: dict[str, Any] = {
    "nopython": True,
    "nogil": True,
    "error_model": "numpy",
    "_nrt": False,
    "no_cfunc_wrapper": True,
    "forceinline": False,  # unset, a kernel would inherit it from the one compiled around it
}


class _Part(JITCodeLibrary):
    """Code of a kernel that only kernels call: translated, neither optimised nor emitted."""

    def __init__(self, codegen: Any, name: str) -> None:
        super().__init__(codegen, name)
        self.below: dict[Any, None] = {}

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def add_linking_library(self, library: Any) -> None:
        if library is not rtsys.library:  # the runtime of reference counts is not used
            library._ensure_finalized()
            self.below |= getattr(library, "below", {}) | {library: None}

    def finalize(self) -> None:
        for function in self._final_module.functions:
            if not function.is_declaration:
                function.linkage = "linkonce_odr"
        self._finalized = True

    def _get_module_for_linking(self) -> Any:
        return self._final_module


class _Program(_Part):
    """Code of a kernel that Python calls and of all kernels below it, optimised once."""

    def finalize(self) -> None:
        own = {one.name for one in self._final_module.functions if not one.is_declaration}
        for part in reversed(self.below):  # callers first: what nothing calls yet is left out
            self._final_module.link_in(part._get_module_for_linking(), preserve=True)
        for function in self._final_module.functions:
            if not function.is_declaration and function.name not in own:
                function.linkage = "internal"
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)
        self._finalize_final_module()

    _get_module_for_linking = JITCodeLibrary._get_module_for_linking


@register_pass(mutates_CFG=True, analysis_only=False)
class _LowerProgram(typed_passes.NativeLowering):
    _name = "windage_lower_program"

    def run_pass(self, state: Any) -> bool:
        library = _Program(state.targetctx.codegen(), state.func_id.func_qualname)
        library.enable_object_caching()
        state.library = library
        return bool(super().run_pass(state))


@register_pass(mutates_CFG=True, analysis_only=False)
class _LowerPart(typed_passes.NativeLowering):
    _name = "windage_lower_part"

    def run_pass(self, state: Any) -> bool:
        state.library = _Part(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_cpython_wrapper = True
        state.flags.no_compile = True
        done = bool(super().run_pass(state))
        lowered = state["cr"]
        address = object()  # where numba has a pointer to machine code; there is none
        state["cr"] = lowered._replace(cfunc=address)
        state.targetctx.insert_user_function(address, lowered.fndesc, [state.library])
        return done


class _Typing:
    """Numba's typing context, which looks a built-in function up once for each types of arguments.

    Kernels add and compare the same few types thousands of times, and each look-up tries dozens of
    implementations.
    """

    known: ClassVar[dict[Any, Any]] = {}

    def __init__(self, context: Any) -> None:
        self._context = context

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def resolve_function_type(self, func: Any, args: Any, kws: Any) -> Any:
        """Return the signature of a function for these arguments."""
        if kws or not isinstance(func, (types.Function, str)):
            return self._context.resolve_function_type(func, args, kws)
        key = func, tuple(args)
        if key not in self.known:
            self.known[key] = self._context.resolve_function_type(func, args, kws)
        return self.known[key]


class _ProgramCompiler(Compiler):
    """Numba's passes without those that rewrite what kernels have none of.

    Closures, context managers, literal unrolling, array expressions, raised exceptions.
    """

    lowering: Any = _LowerProgram

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.state.typingctx = _Typing(self.state.typingctx)

    def define_pipelines(self) -> list[Any]:
        manager = PassManager("windage")
        for each in (
            untyped_passes.TranslateByteCode,
            untyped_passes.FixupArgs,
            untyped_passes.IRProcessing,
            untyped_passes.GenericRewrites,
            untyped_passes.ReconstructSSA,
            typed_passes.NopythonTypeInference,
            typed_passes.PreLowerStripPhis,
            typed_passes.IRLegalization,
            typed_passes.AnnotateTypes,
            self.lowering,
            typed_passes.NoPythonBackend,
        ):
            manager.add_pass(each)
        manager.finalize()
        return [manager]


class _PartCompiler(_ProgramCompiler):
    lowering = _LowerPart


class _PartDispatcher(CPUDispatcher):
    """A kernel as kernels see it. It has no machine code of its own, so Python cannot call it."""

    def add_overload(self, result: Any) -> None:
        """Keep what was compiled for a signature, out of reach of Python."""
        self.overloads[tuple(result.signature.args)] = result

    def _compile_for_args(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"only kernels call this form of {self.py_func.__name__}")


class Kernel(CPUDispatcher):
    """A kernel: a program where Python calls it, a part of another where a kernel does."""

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        super().__init__(function, targetoptions=_OPTIONS, pipeline_class=_ProgramCompiler)
        self.part = _PartDispatcher(
            function, targetoptions=_OPTIONS | options, pipeline_class=_PartCompiler
        )
        functools.update_wrapper(self, function)
        self._cache = _Cache(function)

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Return how a kernel may call this one."""
        return self.part.get_call_template(args, kws)

    def get_overload(self, sig: Any) -> Any:
        """Return what a kernel calls for a signature."""
        return self.part.get_overload(sig)


@functools.cache
def _sources() -> str:
    """Return a hash of all kernel files: which of them a kernel builds on depends on its types."""
    texts = [path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py"))]
    return hashlib.sha256(b"\0".join(texts)).hexdigest()


_DIGEST = hashlib.sha256().digest_size


class _Files(IndexDataCacheFile):
    """Numba's files of one kernel, with data files that are named by what they hold.

    Numba numbers them by the index it has read. Two processes that read the same index give two
    signatures the same number, and whichever index is written last, one of them may load the code
    of the other. Here data never changes under its name, and is there before the index says so: an
    entry lost to a process that wrote at the same time is compiled again, and no more than that.
    So is a damaged one: data begins with its digest, since code that is not whole cannot be run.
    """

    def _load_index(self) -> Any:
        try:
            entries = super()._load_index()
        except Exception:  # damaged, or of other sources: it may name classes that are gone
            return {}
        return entries if isinstance(entries, dict) else {}

    def _save_data(self, name: str, data: Any) -> None:
        code = self._dump(data)
        with self._open_for_write(self._data_path(name)) as file:
            file.write(hashlib.sha256(code).digest() + code)

    def _load_data(self, name: str) -> Any:
        content = Path(self._data_path(name)).read_bytes()
        digest, code = content[:_DIGEST], content[_DIGEST:]
        if hashlib.sha256(code).digest() != digest:
            raise OSError("damaged")  # to numba a file that is gone: it compiles again
        return pickle.loads(code)  # noqa: S301 - numba's own files, as it reads them

    def save(self, key: Any, data: Any) -> None:
        """Keep data under a key."""
        whose = self._dump((self._version, self._source_stamp, key))
        name = self._index_name.replace(".nbi", f".{hashlib.sha256(whose).hexdigest()[:32]}.nbc")
        entries = self._load_index()
        if not entries:  # none, or of other sources: what they have left is of no use
            for path in Path(self._cache_path).glob(self._index_name.replace(".nbi", ".*.nbc")):
                with contextlib.suppress(OSError):
                    path.unlink()
        self._save_data(name, data)
        self._save_index(entries | {key: name})


class _Cache(FunctionCache):
    """Numba's cache, with the sources of a kernel and of what it calls in the key."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        stamp = self._impl.locator.get_source_stamp()
        self._cache_file = _Files(self._cache_path, self._impl.filename_base, stamp)

    def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        return (*super()._index_key(sig, codegen), _sources())

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep compiled code; where it cannot be kept it is used all the same."""
        try:
            super().save_overload(sig, data)
        except OSError as err:
            message = f"compiled code cannot be kept ({err}): the next process compiles it again"
            warnings.warn(message, RuntimeWarning, stacklevel=2)


_OFF = bool(config.DISABLE_JIT)  # type: ignore[attr-defined]


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a kernel."""
    return function if _OFF else Kernel(function)


def inlined(function: Callable[..., Any]) -> Any:
    """Compile a kernel into whatever calls it."""
    return function if _OFF else Kernel(function, forceinline=True)


class _Variants(CPUDispatcher):
    """A function with a kernel for every class of its first argument, chosen by type."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function, targetoptions=_OPTIONS)
        functools.update_wrapper(self, function)
        self._kernels: dict[type, Kernel] = {}

    def register(self, kind: type, **options: Any) -> Callable[[Callable[..., Any]], Any]:
        """Return a decorator that compiles a kernel for this class of first argument."""

        def registered(function: Callable[..., Any]) -> Any:
            self._kernels[kind] = Kernel(function, **options)
            return self._kernels[kind]

        return registered

    def of(self, kind: type) -> Kernel:
        """Return the kernel for this class of first argument."""
        if kind not in self._kernels:
            raise _no_variant(self.py_func, kind)
        return self._kernels[kind]

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Return how a kernel may call the variant for these types."""
        return self.of(_class_of(args[0])).get_call_template(args, kws)

    def get_overload(self, sig: Any) -> Any:
        """Return what a kernel calls for a signature."""
        args, _ = normalize_signature(sig)
        return self.of(_class_of(args[0])).get_overload(sig)

    def _compile_for_args(self, first: Any, *_: Any) -> Any:
        return self.of(type(first))  # numba calls it with the arguments


def _class_of(kind: types.Type) -> type:
    """Return the class of the tuples of a type."""
    return getattr(kind, "instance_class", type(kind))


def _no_variant(function: Callable[..., Any], kind: type) -> InputError:
    name = function.__name__
    return InputError(
        f"the kernel {name} has no variant for {kind.__name__}",
        field=f"{name}.{function.__code__.co_varnames[0]}",
        fix=f"register one: @{name}.register({kind.__name__})",
    )


def variants(function: Callable[..., Any]) -> Any:
    """Make a function of which every class of first argument may `register` a kernel.

    It is the `functools.singledispatch` of kernels: a caller compiles the variant it uses, and no
    other.
    """
    return _singledispatch(function) if _OFF else _Variants(function)


def _singledispatch(function: Callable[..., Any]) -> Any:
    """Return the same without compiling."""

    @functools.singledispatch
    @functools.wraps(function)
    def generic(first: Any, *_: Any) -> Any:
        raise _no_variant(function, type(first))

    register = generic.register
    generic.register = lambda kind, **_: register(kind)  # type: ignore[method-assign,assignment]
    return generic


_plain_globals: dict[int, dict[str, Any]] = {}


def interpreted(kernel: Any) -> Callable[..., Any]:
    """Return a kernel as plain Python, with all kernels it calls; the numbers are the same.

    A second of work does not pay for compiling it.
    """
    if _OFF:
        return _without_overflow(kernel)
    return _without_overflow(_plain(kernel))


def _without_overflow(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let words of 64 bits wrap around in silence, as compiled ones do."""

    @functools.wraps(function)
    def call(*args: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*args)

    return call


def _plain(value: Any) -> Any:
    """Return a module's global as plain Python sees it."""
    if isinstance(value, _Variants):
        return lambda first, *others: _plain(value.of(type(first)))(first, *others)
    if not isinstance(value, Kernel):
        return value
    own = value.py_func.__globals__
    if id(own) not in _plain_globals:
        plain = _plain_globals[id(own)] = dict(own)
        plain.update({name: _plain(one) for name, one in own.items() if _is_kernel(one)})
    names = _plain_globals[id(own)]
    return FunctionType(value.py_func.__code__, names, value.py_func.__name__)


def _is_kernel(value: Any) -> bool:
    return isinstance(value, (Kernel, _Variants))


def _to_the_end(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """Call a function that Ctrl-C cannot cut short, no more than it can cut short compiled code.

    A signal stops Python between any two of its steps, in the main thread only: half a step would
    be in the window and not in the clock. So another thread does the work, and if this one is
    stopped it waits for it; work that was not begun is left.
    """
    if threading.current_thread() is not threading.main_thread():
        return function(*arguments)
    begun, over = threading.Lock(), threading.Event()
    results: list[Any] = []
    errors: list[BaseException] = []

    def work() -> None:
        if begun.acquire(blocking=False):
            try:
                results.append(function(*arguments))
            except BaseException as err:
                errors.append(err)
            finally:
                over.set()

    try:
        threading.Thread(target=work, name="windage kernel").start()
        over.wait()
    finally:
        if not begun.acquire(blocking=False):
            over.wait()
    for err in errors:
        raise err
    return results[0]


def _fingerprint(value: Any) -> Any:
    """Return what tells the type that a kernel sees in a value from others."""
    if isinstance(value, tuple):
        return type(value), *map(_fingerprint, value)
    return compute_fingerprint(value)


class Tier:
    """The choice between compiling a kernel for some types of arguments and interpreting it.

    It is interpreted where it is neither compiled nor in the cache, as long as all that is
    interpreted of it in this process stays within `PATIENCE` seconds. Both give the same numbers,
    so the clock decides nothing else.
    """

    _spent: ClassVar[dict[Any, float]] = {}
    _types: ClassVar[dict[Any, tuple[Any, ...]]] = {}  # to ask numba takes as long as a short run

    def __init__(self, kernel: Any, arguments: tuple[Any, ...]) -> None:
        self.kernel = kernel
        self._key = None if _OFF else (kernel, *map(_fingerprint, arguments))
        if self._key is None or self._spent.get(self._key) == math.inf:
            return
        if self._key not in self._types:
            self._types[self._key] = tuple(map(kernel.typeof_pyval, arguments))
        if self._is_compiled(self._types[self._key]):
            self._spent[self._key] = math.inf

    def _is_compiled(self, signature: tuple[Any, ...]) -> bool:
        if signature in self.kernel.overloads:
            return True
        key = self.kernel._cache._index_key(signature, self.kernel.targetctx.codegen())
        return key in self.kernel._cache._cache_file._load_index()

    def interprets(self, seconds: float = 0.0) -> bool:
        """Whether so many seconds more of plain Python are well spent."""
        return self._key is None or self._spent.get(self._key, 0.0) + seconds <= PATIENCE

    def __call__(self, *arguments: Any, seconds: float = 0.0) -> Any:
        """Call the kernel; interpreting it would take so many seconds, by estimate."""
        if not self.interprets(seconds):
            return self.kernel(*arguments)
        before = time.perf_counter()
        result = _to_the_end(interpreted(self.kernel), arguments)
        if self._key is not None:
            spent = time.perf_counter() - before
            self._spent[self._key] = self._spent.get(self._key, 0.0) + spent
        return result


def call(kernel: Any, *arguments: Any, seconds: float) -> Any:
    """Call a kernel, interpreted if its so many seconds of plain Python are cheaper.

    For kernels whose arguments always have the same types: once compiled, nothing is asked.
    """
    if not _OFF and kernel.overloads:
        return kernel(*arguments)
    return Tier(kernel, arguments)(*arguments, seconds=seconds)
