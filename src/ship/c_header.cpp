// SPDX-License-Identifier: Apache-2.0
// Which C function stands for an op?
//
//   int my_ext_my_add(const KilnTensor* a, const KilnTensor* b, KilnTensor** result)
//
// An optional tensor, string or list may be null; another optional is a pointer that may be null.
#include "ship/c_header.h"

#include <fmt/format.h>

#include "base/text.h"

namespace kiln::ship {

namespace {

// `%` stands for the parameter's name.
struct Form {
  const char* declaration;
  const char* optional_declaration;
  const char* value;           // fills the KilnValue `v`
  const char* optional_value;  // the same where it is there
};

Form form_of(const ParameterFacts& p) {
  switch (p.type) {
    case KILN_TYPE_TENSOR:
      return p.written
                 ? Form{"KilnTensor* %", "KilnTensor* %", "v->as.tensor = %;", "v->as.tensor = %;"}
                 : Form{"const KilnTensor* %", "const KilnTensor* %",
                        "v->as.tensor = (KilnTensor*)%;", "v->as.tensor = (KilnTensor*)%;"};
    case KILN_TYPE_FLOAT:
      return {"double %", "const double* %", "v->as.f = %;", "v->as.f = *%;"};
    case KILN_TYPE_STR:
      return {"const char* %", "const char* %", "v->as.s = %; v->count = (uint32_t)strlen(%);",
              "v->as.s = %; v->count = (uint32_t)strlen(%);"};
    case KILN_TYPE_DEVICE:
      return {"int32_t %_type, int32_t %_index", "const int32_t* %",
              "v->as.device.type = %_type; v->as.device.index = %_index;",
              "v->as.device.type = %[0]; v->as.device.index = %[1];"};
    case KILN_TYPE_TENSOR_LIST:
      return {"KilnTensor* const* %, uint32_t %_count", "KilnTensor* const* %, uint32_t %_count",
              "v->as.tensors = %; v->count = %_count;", "v->as.tensors = %; v->count = %_count;"};
    case KILN_TYPE_INT_LIST:
      return {"const int64_t* %, uint32_t %_count", "const int64_t* %, uint32_t %_count",
              "v->as.ints = %; v->count = %_count;", "v->as.ints = %; v->count = %_count;"};
    case KILN_TYPE_FLOAT_LIST:
      return {"const double* %, uint32_t %_count", "const double* %, uint32_t %_count",
              "v->as.floats = %; v->count = %_count;", "v->as.floats = %; v->count = %_count;"};
    default:  // INT, BOOL, DTYPE
      return {"int64_t %", "const int64_t* %", "v->as.i = %;", "v->as.i = *%;"};
  }
}

const char* result_declaration(uint32_t type) {
  switch (type) {
    case KILN_TYPE_TENSOR:
      return "KilnTensor** %";
    case KILN_TYPE_FLOAT:
      return "double* %";
    case KILN_TYPE_TENSOR_LIST:
      return "KilnTensor* const** %, uint32_t* %_count";
    default:
      return "int64_t* %";
  }
}

const char* result_store(uint32_t type) {
  switch (type) {
    case KILN_TYPE_TENSOR:
      return "*% = v->as.tensor;";
    case KILN_TYPE_FLOAT:
      return "*% = v->as.f;";
    case KILN_TYPE_TENSOR_LIST:
      return "*% = v->as.tensors; *%_count = v->count;";
    default:
      return "*% = v->as.i;";
  }
}

std::string named(const char* form, const std::string& name) {
  return text::replace_all(form, "%", name);
}

// A comment must not end early, nor be continued by a backslash.
std::string in_comment(std::string_view words) {
  std::string out = text::replace_all(text::replace_all(words, "*/", "* /"), "\\", "/");
  return text::replace_all(out, "\n", "\n * ");
}

std::string result_name(const OpFacts& op, size_t i) {
  return op.results.size() == 1 ? "result" : fmt::format("result{}", i);
}

// A parameter of an op may have a name that C++ keeps for itself, or one of this header's own.
std::string c_parameter(const ParameterFacts& p) {
  bool taken = !text::is_identifier(p.name) || p.name == "v" || p.name.starts_with("result");
  return taken ? p.name + "_" : p.name;
}

// NAME_library and NAME_last_error are the header's own.
std::string function_name(const OpFacts& op) {
  std::string name = op.c_name();
  return name == "library" || name == "last_error" ? name + "_" : name;
}

std::string function(const std::string& library, const OpFacts& op, size_t index) {
  std::vector<std::string> declarations;
  std::string body;
  for (size_t i = 0; i < op.parameters.size(); ++i) {
    const ParameterFacts& p = op.parameters[i];
    Form form = form_of(p);
    std::string name = c_parameter(p);
    declarations.push_back(named(p.optional ? form.optional_declaration : form.declaration, name));
    body += fmt::format("  v = &arguments[{}];\n", i);
    body += p.optional ? fmt::format("  if ({}) {{ v->type = {}; {} }}\n", name, p.type,
                                     named(form.optional_value, name))
                       : fmt::format("  v->type = {}; {}\n", p.type, named(form.value, name));
  }
  std::string stores;
  for (size_t i = 0; i < op.results.size(); ++i) {
    std::string name = result_name(op, i);
    declarations.push_back(named(result_declaration(op.results[i].type), name));
    stores += fmt::format("  v = &results[{}];\n  {}\n", i,
                          named(result_store(op.results[i].type), name));
  }
  std::string list = declarations.empty() ? "void" : text::join(declarations, ", ");
  return fmt::format(
      "/* {}{} */\n"
      "static inline int {}_{}({}) {{\n"
      "  KilnValue arguments[{}], results[{}];\n"
      "  KilnValue* v = arguments;\n"
      "  memset(arguments, 0, sizeof arguments);\n"
      "  memset(results, 0, sizeof results);\n"
      "{}"
      "  if (kiln_library_{}()->call({}, arguments, {}, results)) return 1;\n"
      "{}"
      "  (void)v;\n"
      "  return 0;\n"
      "}}\n\n",
      in_comment(op.schema), op.doc.empty() ? "" : "\n * " + in_comment(op.doc), library,
      function_name(op), list, op.parameters.size() + 1, op.results.size() + 1, body, library,
      index, op.parameters.size(), stores);
}

}  // namespace

std::string c_header(const LibraryFacts& library) {
  const std::string& name = library.name;
  std::string out = fmt::format(
      "/* C API of lib{0}.so, generated by kiln for this build of "
      "the library: an op "
      "is\n"
      " * called by its number.\n"
      " *\n"
      " * Each function returns 0, or 1 with the text in {0}_last_error(). A KilnTensor argument "
      "is borrowed for the "
      "call; a\n"
      " * result is the caller's: r->release(r). On a GPU the work has finished after "
      "{0}_library()->synchronize(...). "
      "*/\n"
      "#ifndef KILN_OPS_{0}_H\n"
      "#define KILN_OPS_{0}_H\n\n"
      "#include <kiln/abi.h>\n"
      "#include <string.h>\n\n"
      "#ifdef __cplusplus\n"
      "extern \"C\" {{\n"
      "#endif\n"
      "extern const KilnLibrary* kiln_library_{0}(void);\n"
      "#ifdef __cplusplus\n"
      "}}\n"
      "#endif\n\n"
      "static inline const KilnLibrary* {0}_library(void) {{ return kiln_library_{0}(); }}\n"
      "static inline const char* {0}_last_error(void) {{ return kiln_library_{0}()->last_error(); "
      "}}\n\n",
      name);
  for (size_t i = 0; i < library.ops.size(); ++i) out += function(name, library.ops[i], i);
  return out + "#endif\n";
}

}  // namespace kiln::ship
