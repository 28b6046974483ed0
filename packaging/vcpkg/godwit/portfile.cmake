# An overlay port: it takes the sources from the checkout that it lies in. vcpkg install godwit --overlay-ports=packaging/vcpkg
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(with_mpi OFF)
if("mpi" IN_LIST FEATURES)
  set(with_mpi AUTO)
endif()
vcpkg_cmake_configure(SOURCE_PATH "${SOURCE_PATH}"
                      OPTIONS -DGODWIT_BUILD_TESTS=OFF -DGODWIT_BUILD_BENCH=OFF -DGODWIT_BUILD_EXAMPLES=OFF -DGODWIT_BUILD_REPORT=OFF
                              -DGODWIT_SHARED_TOO=OFF -DGODWIT_WITH_MPI=${with_mpi})
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(PACKAGE_NAME godwit CONFIG_PATH lib/cmake/godwit)
vcpkg_fixup_pkgconfig()
# No programs: godwit-pthread looks for its library in ../lib, which is elsewhere where vcpkg keeps tools.
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share" "${CURRENT_PACKAGES_DIR}/debug/bin"
                    "${CURRENT_PACKAGES_DIR}/bin")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
