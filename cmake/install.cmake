include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS fedsmooth EXPORT fedsmooth-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS fedsmooth-cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY fedsmooth DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(EXPORT fedsmooth-targets NAMESPACE fedsmooth::
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/fedsmooth)
configure_package_config_file(cmake/fedsmooth-config.cmake.in
                              ${PROJECT_BINARY_DIR}/fedsmooth-config.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/fedsmooth)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/fedsmooth-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/fedsmooth-config.cmake
              ${PROJECT_BINARY_DIR}/fedsmooth-config-version.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/fedsmooth)
