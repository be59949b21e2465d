# `make package`: Debian packages. fedsmooth is the program, libfedsmooth-dev the library with its
# headers, which install.cmake puts into these components.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)  # `make package` builds what it packs, not the tests
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME fedsmooth)
set(CPACK_PACKAGE_VENDOR "The fedsmooth authors")
set(CPACK_PACKAGE_CONTACT "The fedsmooth authors")
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL program development)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)  # Depends on what the program links, by dpkg-shlibdeps
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME fedsmooth)
set(CPACK_DEBIAN_PROGRAM_DESCRIPTION "Trains classifiers by federated averaging against attacks on their
smoothed classifier, and proves per image within which radius its answer holds.")
# Figures are drawn by gnuplot, data sets are downloaded by curl.
set(CPACK_DEBIAN_PROGRAM_PACKAGE_RECOMMENDS "gnuplot-nox, curl, ca-certificates")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libfedsmooth-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION "The static library and the headers of fedsmooth, for CMake.")
set(development_depends libfmt-dev nlohmann-json3-dev libpng-dev libjpeg-dev zlib1g-dev)
if(MPI_C_FOUND)
  list(APPEND development_depends libopenmpi-dev)
endif()
list(JOIN development_depends ", " CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS)
include(CPack)
