# The version of the package, as _version.py states it. Before 1.0 a minor version may change the interface.

file(STRINGS "${CMAKE_CURRENT_LIST_DIR}/../_version.py" _tsg_line REGEX "^__version__ = ")
string(REGEX MATCH "[0-9]+(\\.[0-9]+)*" PACKAGE_VERSION "${_tsg_line}")
unset(_tsg_line)

string(REGEX MATCH "^[0-9]+\\.[0-9]+" _tsg_minor "${PACKAGE_VERSION}")
string(REGEX MATCH "^[0-9]+\\.[0-9]+" _tsg_wanted "${PACKAGE_FIND_VERSION}.0")
set(PACKAGE_VERSION_COMPATIBLE FALSE)
set(PACKAGE_VERSION_EXACT FALSE)
if(_tsg_minor VERSION_EQUAL _tsg_wanted AND NOT PACKAGE_VERSION VERSION_LESS PACKAGE_FIND_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
endif()
if(PACKAGE_VERSION VERSION_EQUAL PACKAGE_FIND_VERSION)
  set(PACKAGE_VERSION_EXACT TRUE)
endif()
unset(_tsg_minor)
unset(_tsg_wanted)
