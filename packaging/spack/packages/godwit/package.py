"""Godwit in Spack: see packaging/README.md of its sources."""

from spack.package import *


class Godwit(CMakePackage):
    """Fork-join and futures in ordinary C++20 whose threads migrate between processes and hosts."""

    # Set the address of your copy here, or: spack dev-build godwit@main in a checkout.
    git = "file:///path/to/godwit"
    license("Apache-2.0")

    version("main", branch="main")

    variant("shared", default=False, description="The shared library alone")
    variant("mpi", default=True, description="A component for the MPI of this environment")
    variant("report", default=False, description="godwit-report, which draws pages from traces")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("mpi", when="+mpi")
    depends_on("cli11", when="+report")
    depends_on("nlohmann-json", when="+report")

    conflicts("%gcc@:11", msg="godwit needs gcc 12 or newer")
    conflicts("%clang@:13", msg="godwit needs clang 14 or newer")
    conflicts("platform=darwin", msg="godwit needs Linux")

    def cmake_args(self):
        args = [
            self.define("GODWIT_BUILD_TESTS", False),
            self.define("GODWIT_BUILD_BENCH", False),
            self.define("GODWIT_BUILD_EXAMPLES", False),
            self.define_from_variant("GODWIT_BUILD_REPORT", "report"),
            self.define_from_variant("BUILD_SHARED_LIBS", "shared"),
            self.define("GODWIT_SHARED_TOO", False),
            self.define("GODWIT_WITH_MPI", "ON" if "+mpi" in self.spec else "OFF"),
        ]
        if "+mpi" in self.spec:
            args.append(self.define("GODWIT_MPI_COMPILERS", self.spec["mpi"].mpicxx))
        return args
