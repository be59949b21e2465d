include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS fedsmooth EXPORT fedsmooth-targets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
install(TARGETS fedsmooth-cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
# The program writes its manual page and its completion for shells.
foreach(what bash fish zsh man)
  install(CODE "execute_process(COMMAND \"$<TARGET_FILE:fedsmooth-cli>\" completion ${what}
    OUTPUT_FILE \"${PROJECT_BINARY_DIR}/completion.${what}\" COMMAND_ERROR_IS_FATAL ANY)" COMPONENT program)
endforeach()
install(FILES ${PROJECT_BINARY_DIR}/completion.bash RENAME fedsmooth
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT program)
install(FILES ${PROJECT_BINARY_DIR}/completion.fish RENAME fedsmooth.fish
        DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT program)
# Debian's zsh reads site-functions under /usr/local alone, and vendor-completions under /usr.
install(CODE "set(ZSH_FOLDER site-functions)
if(CMAKE_INSTALL_PREFIX STREQUAL \"/usr\")
  set(ZSH_FOLDER vendor-completions)
endif()
file(INSTALL \"${PROJECT_BINARY_DIR}/completion.zsh\" RENAME _fedsmooth
     DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}/zsh/\${ZSH_FOLDER}\")" COMPONENT program)
install(FILES ${PROJECT_BINARY_DIR}/completion.man RENAME fedsmooth.1
        DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT program)
install(FILES CHANGELOG.md README.md SECURITY.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright COMPONENT program)
# Which headers are public is found at installation; the test public_headers compiles each by itself.
install(CODE "set(SOURCE \"${PROJECT_SOURCE_DIR}\")
set(INCLUDE \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_INCLUDEDIR}\")" COMPONENT development)
install(SCRIPT cmake/public_headers.cmake COMPONENT development)
install(EXPORT fedsmooth-targets NAMESPACE fedsmooth::
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/fedsmooth COMPONENT development)
configure_package_config_file(cmake/fedsmooth-config.cmake.in
                              ${PROJECT_BINARY_DIR}/fedsmooth-config.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/fedsmooth)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/fedsmooth-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/fedsmooth-config.cmake
              ${PROJECT_BINARY_DIR}/fedsmooth-config-version.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/fedsmooth COMPONENT development)
