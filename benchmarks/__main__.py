"""Runs all benchmarks, or the named ones: `python -m benchmarks [NAME …]`."""

import importlib
import pkgutil
import sys

import benchmarks


def main() -> None:
    """Run benchmarks: modules of this package with a `main`. Their first line says what they measure."""
    modules = {
        module.name.rpartition(".")[2]: module.name
        for module in pkgutil.walk_packages(benchmarks.__path__, "benchmarks.")
        if not module.ispkg and not module.name.endswith("__main__")
    }
    names = sorted(modules)
    wanted = sys.argv[1:] or names
    if unknown := set(wanted) - set(names):
        sys.exit(f"There is no benchmark {', '.join(sorted(unknown))}; there are {', '.join(names)}.")
    for name in wanted:
        module = importlib.import_module(modules[name])
        if hasattr(module, "main"):
            print(f"\n{name}: {(module.__doc__ or '').splitlines()[0]}\n", flush=True)
            module.main()


if __name__ == "__main__":
    main()
