include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS fedsmooth EXPORT fedsmooth-targets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
install(TARGETS fedsmooth-cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
install(FILES CHANGELOG.md README.md SECURITY.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright COMPONENT program)
# fedsmooth/fedsmooth.h and what it includes; the test install_package compiles each by itself.
set(public_headers
  attack/attack_smoothed
  base/array
  base/check
  base/classifier
  base/error
  base/host_device
  base/parallel
  base/random
  base/registry
  base/stop
  base/version
  config/experiment
  data/data_source
  data/dataset
  data/public_sets
  engine/samplers
  federated/aggregate
  federated/byzantine
  federated/client
  federated/executor
  federated/objective
  federated/objectives/noise_ascent
  federated/objectives/score
  federated/order_free_sum
  federated/partition
  federated/passes
  federated/reductions
  federated/server_optimizers
  federated/telemetry
  federated/train
  fedsmooth
  jobs/attack
  jobs/certification
  jobs/compare
  jobs/context
  jobs/federation
  jobs/fetch_data
  jobs/load_run
  jobs/merge
  jobs/predict
  jobs/recertify
  jobs/report
  jobs/sweep
  jobs/training
  jobs/verify
  model/architectures
  model/model
  model/network
  records/attacks
  records/certificates
  records/clients
  records/rounds
  report/attack_summary
  report/norm
  report/paired
  report/report_run
  report/summary
  smoothing/certify
  smoothing/noise
  smoothing/noise_law
  smoothing/sampler)
foreach(header ${public_headers})
  cmake_path(GET header PARENT_PATH room)
  install(FILES fedsmooth/${header}.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/fedsmooth/${room}
          COMPONENT development)
endforeach()
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
