# find_package(tf_stitch_gather): the ops for C++ and C programs.
#
# Targets:
#   tf_stitch_gather::cc          the C++ client API: the headers, the op library and TensorFlow's C++ API
#   tf_stitch_gather::tensorflow  the TensorFlow wheel alone, for programs that load the op library themselves
#
# Variables:
#   tf_stitch_gather_LIBRARY      the op library, for TF_LoadLibrary
#   tf_stitch_gather_INCLUDE_DIR  the folder with the headers
#   tf_stitch_gather_VERSION      the version of the package
#
# Set before:
#   tf_stitch_gather_TENSORFLOW_DIR  the installed tensorflow package, where it is neither beside this package
#                                    nor that of the python3 that CMake finds (Python3_EXECUTABLE)

if(CMAKE_VERSION VERSION_LESS 3.19)
  set(tf_stitch_gather_FOUND FALSE)
  set(tf_stitch_gather_NOT_FOUND_MESSAGE "tf_stitch_gather needs CMake 3.19 or later")
  return()
endif()

get_filename_component(_tsg_package "${CMAKE_CURRENT_LIST_DIR}/.." REALPATH)
set(tf_stitch_gather_LIBRARY "${_tsg_package}/libtf_stitch_gather.so")
set(tf_stitch_gather_INCLUDE_DIR "${_tsg_package}/include")
foreach(_tsg_file IN ITEMS "${tf_stitch_gather_LIBRARY}" "${tf_stitch_gather_INCLUDE_DIR}"
                           "${_tsg_package}/_build_info.json")
  if(NOT EXISTS "${_tsg_file}")
    set(tf_stitch_gather_FOUND FALSE)
    set(tf_stitch_gather_NOT_FOUND_MESSAGE "tf_stitch_gather was not built: ${_tsg_file} is missing")
    return()
  endif()
endforeach()

file(READ "${_tsg_package}/_build_info.json" _tsg_info)
string(JSON _tsg_tensorflow GET "${_tsg_info}" tensorflow)
string(JSON _tsg_cxx11_abi GET "${_tsg_info}" cxx11_abi)
string(JSON _tsg_cxx_standard GET "${_tsg_info}" cxx_standard)
string(REGEX REPLACE "[^0-9]" "" _tsg_cxx_standard "${_tsg_cxx_standard}")
string(REGEX MATCH "^[0-9]+\\.[0-9]+" _tsg_tensorflow "${_tsg_tensorflow}")

# TensorFlow: where the user says, beside this package, or where Python finds it.
if(NOT tf_stitch_gather_TENSORFLOW_DIR)
  get_filename_component(_tsg_beside "${_tsg_package}/../tensorflow" ABSOLUTE)
  if(EXISTS "${_tsg_beside}/libtensorflow_cc.so.2")
    set(tf_stitch_gather_TENSORFLOW_DIR "${_tsg_beside}")
  else()
    find_package(Python3 QUIET COMPONENTS Interpreter)
    if(Python3_EXECUTABLE)
      execute_process(
        COMMAND
          "${Python3_EXECUTABLE}" -c
          "import importlib.util, os; print(os.path.dirname(importlib.util.find_spec('tensorflow').origin), end='')"
        OUTPUT_VARIABLE tf_stitch_gather_TENSORFLOW_DIR
        ERROR_QUIET)
    endif()
  endif()
endif()
set(_tsg_tensorflow_cc "${tf_stitch_gather_TENSORFLOW_DIR}/libtensorflow_cc.so.2")
set(_tsg_tensorflow_framework "${tf_stitch_gather_TENSORFLOW_DIR}/libtensorflow_framework.so.2")
set(_tsg_tensorflow_include "${tf_stitch_gather_TENSORFLOW_DIR}/include")
foreach(_tsg_file IN ITEMS "${_tsg_tensorflow_cc}" "${_tsg_tensorflow_framework}"
                           "${_tsg_tensorflow_include}/tensorflow/c/c_api.h")
  if(NOT EXISTS "${_tsg_file}")
    set(tf_stitch_gather_FOUND FALSE)
    set(tf_stitch_gather_NOT_FOUND_MESSAGE
        "tf_stitch_gather needs TensorFlow ${_tsg_tensorflow}, but ${_tsg_file} is missing: set \
tf_stitch_gather_TENSORFLOW_DIR to the folder of the installed tensorflow package, or Python3_EXECUTABLE to an \
interpreter that has it")
    return()
  endif()
endforeach()

# The op library fits one minor version of TensorFlow. TensorFlow's headers do not state theirs; pip does, in the
# name of a folder beside the package.
get_filename_component(_tsg_site "${tf_stitch_gather_TENSORFLOW_DIR}/.." ABSOLUTE)
file(GLOB _tsg_dist_infos "${_tsg_site}/tensorflow-*.dist-info" "${_tsg_site}/tensorflow_cpu-*.dist-info")
foreach(_tsg_dist_info IN LISTS _tsg_dist_infos)
  string(REGEX REPLACE "^.*/tensorflow(_cpu)?-([0-9]+\\.[0-9]+).*$" "\\2" _tsg_found "${_tsg_dist_info}")
  if(NOT _tsg_found VERSION_EQUAL _tsg_tensorflow)
    set(tf_stitch_gather_FOUND FALSE)
    set(tf_stitch_gather_NOT_FOUND_MESSAGE
        "tf_stitch_gather was built for TensorFlow ${_tsg_tensorflow}, but ${tf_stitch_gather_TENSORFLOW_DIR} is \
TensorFlow ${_tsg_found}")
    return()
  endif()
endforeach()

if(NOT TARGET tf_stitch_gather::tensorflow)
  add_library(tf_stitch_gather::tensorflow INTERFACE IMPORTED)
  target_include_directories(tf_stitch_gather::tensorflow SYSTEM INTERFACE "${_tsg_tensorflow_include}")
  target_link_libraries(tf_stitch_gather::tensorflow INTERFACE "${_tsg_tensorflow_cc}"
                                                               "${_tsg_tensorflow_framework}")
endif()

if(NOT TARGET tf_stitch_gather::library)
  add_library(tf_stitch_gather::library SHARED IMPORTED)
  set_target_properties(tf_stitch_gather::library PROPERTIES IMPORTED_LOCATION "${tf_stitch_gather_LIBRARY}"
                                                             IMPORTED_NO_SONAME TRUE)
endif()

if(NOT TARGET tf_stitch_gather::cc)
  add_library(tf_stitch_gather::cc INTERFACE IMPORTED)
  target_include_directories(tf_stitch_gather::cc INTERFACE "${tf_stitch_gather_INCLUDE_DIR}")
  target_compile_features(tf_stitch_gather::cc INTERFACE cxx_std_${_tsg_cxx_standard})
  # As TensorFlow was compiled: the layout of its classes depends on both.
  target_compile_definitions(tf_stitch_gather::cc INTERFACE _GLIBCXX_USE_CXX11_ABI=${_tsg_cxx11_abi}
                                                            EIGEN_MAX_ALIGN_BYTES=64)
  # A program names no symbol of the op library, which registers the ops when it is loaded.
  target_link_options(tf_stitch_gather::cc INTERFACE LINKER:--no-as-needed)
  target_link_libraries(tf_stitch_gather::cc INTERFACE tf_stitch_gather::library tf_stitch_gather::tensorflow)
endif()

foreach(
  _tsg_variable IN
  ITEMS beside
        cxx11_abi
        cxx_standard
        dist_info
        dist_infos
        file
        found
        info
        package
        site
        tensorflow
        tensorflow_cc
        tensorflow_framework
        tensorflow_include)
  unset(_tsg_${_tsg_variable})
endforeach()
unset(_tsg_variable)
