# meshard_page(TARGET FOLDER): turns the style sheet, the scripts and the frame of a page into string literals in
# page_sources.inc, which the sources of TARGET may include. A policy in the page allows only this style sheet and
# script, by their hashes.

# The base64 form of a number in hexadecimal digits, whose count is a multiple of two.
function(meshard_base64 hex out)
  set(alphabet "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
  string(LENGTH "${hex}" length)
  math(EXPR missing "(6 - ${length} % 6) % 6")
  string(REPEAT "0" ${missing} zeros)
  string(APPEND hex "${zeros}")
  math(EXPR last "${length} + ${missing} - 6")
  set(text "")
  foreach(at RANGE 0 ${last} 6)
    string(SUBSTRING "${hex}" ${at} 6 group)
    foreach(shift 18 12 6 0)
      math(EXPR digit "(0x${group} >> ${shift}) & 63")
      string(SUBSTRING "${alphabet}" ${digit} 1 letter)
      string(APPEND text "${letter}")
    endforeach()
  endforeach()
  # Each added byte makes one trailing letter, which is padding.
  math(EXPR padding "${missing} / 2")
  string(LENGTH "${text}" length)
  math(EXPR kept "${length} - ${padding}")
  string(SUBSTRING "${text}" 0 ${kept} text)
  string(REPEAT "=" ${padding} equals)
  set(${out} "${text}${equals}" PARENT_SCOPE)
endfunction()

function(meshard_page target folder)
  set(script "(() => {\n'use strict';\n")
  foreach(name basics tables overview devices shardings collectives timeline main)
    file(READ ${folder}/${name}.js part)
    string(APPEND script "\n${part}")
    list(APPEND files ${folder}/${name}.js)
  endforeach()
  string(APPEND script "})();\n")
  file(READ ${folder}/page.css style)
  file(READ ${folder}/page.html frame)
  list(APPEND files ${folder}/page.css ${folder}/page.html)
  foreach(name script style)
    string(SHA256 hash "${${name}}")
    meshard_base64("${hash}" ${name}_hash)
  endforeach()
  set(generated ${CMAKE_CURRENT_BINARY_DIR}/page)
  file(CONFIGURE OUTPUT ${generated}/page_sources.inc @ONLY CONTENT
"// Made by CMake from the files of the page.
constexpr std::string_view kPageScript = R\"page(@script@)page\";
constexpr std::string_view kPageScriptHash = \"@script_hash@\";
constexpr std::string_view kPageStyle = R\"page(@style@)page\";
constexpr std::string_view kPageStyleHash = \"@style_hash@\";
constexpr std::string_view kPageFrame = R\"page(@frame@)page\";
")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${files})
  target_include_directories(${target} PRIVATE ${generated})
endfunction()
