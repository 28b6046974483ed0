"""Godwit as a Conan 2 package, from this checkout: conan create packaging/conan --build=missing

Options: shared; with_mpi (components for the MPIs that the machine has: they are not Conan's). See ../README.md.
"""

import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load, rmdir


class Godwit(ConanFile):
    name = "godwit"
    license = "Apache-2.0"
    description = "Fork-join and futures whose threads migrate"
    topics = ("parallel", "fork-join", "work-stealing", "threads", "mpi")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "with_mpi": [True, False]}
    default_options = {"shared": False, "with_mpi": False}

    def set_version(self):
        text = load(self, os.path.join(self.recipe_folder, "..", "..", "CMakeLists.txt"))
        self.version = re.search(r"project\(godwit VERSION ([0-9.]+)", text).group(1)

    def export_sources(self):
        root = os.path.join(self.recipe_folder, "..", "..")
        for pattern in ("CMakeLists.txt", "LICENSE", "cmake/*", "include/*", "src/*", "tools/*", "integrations/*"):
            copy(self, pattern, src=root, dst=self.export_sources_folder)

    def validate(self):
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration("godwit needs Linux")
        check_min_cppstd(self, 20)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["GODWIT_BUILD_TESTS"] = False
        toolchain.cache_variables["GODWIT_BUILD_BENCH"] = False
        toolchain.cache_variables["GODWIT_BUILD_EXAMPLES"] = False
        toolchain.cache_variables["GODWIT_BUILD_REPORT"] = False
        toolchain.cache_variables["GODWIT_SHARED_TOO"] = False
        toolchain.cache_variables["GODWIT_WITH_MPI"] = "AUTO" if self.options.with_mpi else "OFF"
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", src=self.source_folder, dst=os.path.join(self.package_folder, "licenses"))
        rmdir(self, os.path.join(self.package_folder, "lib", "pkgconfig"))  # Conan's generators write their own

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "godwit")
        self.cpp_info.set_property("cmake_target_name", "godwit::godwit")
        self.cpp_info.set_property("pkg_config_name", "godwit")
        self.cpp_info.libs = ["godwit"]
        self.cpp_info.system_libs = ["pthread", "dl"]
