// SPDX-License-Identifier: Apache-2.0
// How is the level of a module read: directives, variables, and the heads of functions?
#include "ptx/parser.h"

#include <fmt/format.h>

#include "ptx/cursor.h"

namespace kiln::ptx {
namespace {

class ModuleReader {
 public:
  ModuleReader(std::string_view text) : text_(text), cursor_(text, 1) {}

  Result<Module> read() {
    while (!cursor_.failed() && cursor_.peek().kind != TokenKind::End) statement();
    if (cursor_.failed()) return cursor_.error();
    if (module_.version_major == 0) {
      return Error{Fault::Work, "cannot read PTX", "it has no .version directive",
                   "is this PTX text?"};
    }
    for (uint32_t i = 0; i < module_.functions.size(); ++i) {
      const Function& function = module_.functions[i];
      auto [place, added] = module_.function_index.emplace(function.name, i);
      if (!added && !function.body_text.empty()) place->second = i;
    }
    return std::move(module_);
  }

 private:
  struct Linkage {
    bool is_extern = false;
    bool is_weak = false;
  };

  bool statement() {
    Token token = cursor_.peek();
    if (token.kind != TokenKind::Dotted) {
      if (cursor_.accept(';')) return true;
      return cursor_.fail("expected a directive");
    }
    cursor_.take();
    Linkage linkage;
    while (token.text == "visible" || token.text == "extern" || token.text == "weak" ||
           token.text == "common") {
      linkage.is_extern |= token.text == "extern";
      linkage.is_weak |= token.text == "weak" || token.text == "common";
      if (cursor_.peek().kind != TokenKind::Dotted) return cursor_.fail("expected a directive");
      token = cursor_.take();
    }
    if (token.text == "version") return version();
    if (token.text == "target") return target();
    if (token.text == "address_size") return address_size();
    if (token.text == "file") return file();
    if (token.text == "loc") {
      SourcePoint ignored;
      return cursor_.location(token, &ignored, &ignored);
    }
    if (token.text == "pragma") return cursor_.skip_to_semicolon();
    if (token.text == "section") return section();
    if (token.text == "alias") return alias();
    if (token.text == "entry" || token.text == "func") return function(token, linkage);
    if (token.text == "tex") return cursor_.skip_to_semicolon();
    if (auto space = space_named(token.text)) return variable(*space, linkage);
    return cursor_.fail_at(token, "unknown directive at module level");
  }

  bool version() {
    // "9.0" is one number for the lexer.
    Token token = cursor_.peek();
    Operand ignored;
    if (!cursor_.number(&ignored)) return false;
    size_t dot = token.text.find('.');
    if (dot == token.text.npos) return cursor_.fail_at(token, "expected a version such as 9.0");
    for (char c : token.text.substr(0, dot)) {
      if (c < '0' || c > '9' || module_.version_major > 99)
        return cursor_.fail_at(token, "expected a version such as 9.0");
      module_.version_major = module_.version_major * 10 + static_cast<uint32_t>(c - '0');
    }
    for (char c : token.text.substr(dot + 1)) {
      if (c < '0' || c > '9' || module_.version_minor > 99)
        return cursor_.fail_at(token, "expected a version such as 9.0");
      module_.version_minor = module_.version_minor * 10 + static_cast<uint32_t>(c - '0');
    }
    return true;
  }

  bool target() {
    if (!cursor_.expect_word(&module_.target)) return false;
    while (cursor_.accept(',')) {
      std::string_view ignored;
      if (!cursor_.expect_word(&ignored)) return false;
    }
    return true;
  }

  bool address_size() {
    Token at = cursor_.peek();
    uint64_t bits = 0;
    if (!cursor_.expect_unsigned(&bits)) return false;
    return bits == 64 || cursor_.fail_at(at, "only 64-bit addresses are supported");
  }

  bool file() {
    uint64_t index = 0;
    if (!cursor_.expect_unsigned(&index)) return false;
    if (cursor_.peek().kind != TokenKind::String)
      return cursor_.fail("expected a file name in quotes");
    module_.files[static_cast<uint32_t>(index)] = cursor_.take().text;
    while (cursor_.accept(',')) {
      uint64_t ignored = 0;
      if (!cursor_.expect_unsigned(&ignored)) return false;
    }
    return true;
  }

  bool alias() {
    std::string_view name, target;
    if (!cursor_.expect_word(&name) || !cursor_.expect(',') || !cursor_.expect_word(&target))
      return false;
    module_.aliases[name] = target;
    return cursor_.expect(';');
  }

  bool section() {
    while (!cursor_.peek().is('{')) {
      if (cursor_.peek().kind == TokenKind::End) return cursor_.fail("expected '{'");
      cursor_.take();
    }
    std::string_view ignored;
    uint32_t line = 0;
    return braces(&ignored, &line);
  }

  bool variable(Space space, Linkage linkage) {
    Variable common;
    common.space = space;
    common.is_extern = linkage.is_extern;
    // `.const[1]`: a bank, of old.
    if (cursor_.accept('[')) {
      uint64_t ignored = 0;
      if (!cursor_.expect_unsigned(&ignored) || !cursor_.expect(']')) return false;
    }
    if (!cursor_.declarator(&common) || !cursor_.initializer(&common)) return false;
    module_.variables.push_back(std::move(common));
    return cursor_.expect(';');
  }

  bool extents(const Token& at, uint32_t (&out)[3]) {
    out[0] = out[1] = out[2] = 1;
    for (uint32_t& extent : out) {
      uint64_t value = 0;
      if (!cursor_.expect_unsigned(&value)) return false;
      if (value > 0x7fffffff) return cursor_.fail_at(at, "this extent is too large");
      extent = static_cast<uint32_t>(value);
      if (!cursor_.accept(',')) break;
    }
    return true;
  }

  bool function(const Token& at, Linkage linkage) {
    Function function;
    function.is_entry = at.text == "entry";
    function.is_extern = linkage.is_extern;
    function.is_weak = linkage.is_weak;
    function.line = at.line;
    if (cursor_.accept_dotted("attribute")) {
      while (!cursor_.accept(')')) {
        if (cursor_.peek().kind == TokenKind::End) return cursor_.fail("expected ')'");
        cursor_.take();
      }
    }
    if (!function.is_entry && cursor_.peek().is('(') && !cursor_.parameters(&function.results))
      return false;
    if (!cursor_.expect_word(&function.name)) return false;
    if (cursor_.peek().is('(') && !cursor_.parameters(&function.parameters)) return false;
    while (cursor_.peek().kind == TokenKind::Dotted) {
      Token directive = cursor_.take();
      uint32_t shape[3];
      if (directive.text == "maxntid") {
        if (!extents(directive, shape)) return false;
        uint64_t threads = uint64_t{shape[0]} * shape[1] * shape[2];
        function.max_threads = threads > 0xffffffffu ? 0xffffffffu : static_cast<uint32_t>(threads);
      } else if (directive.text == "reqntid") {
        if (!extents(directive, function.required_threads)) return false;
      } else if (directive.text == "reqnctapercluster") {
        if (!extents(directive, function.required_cluster)) return false;
      } else if (directive.text == "minnctapersm" || directive.text == "maxnreg" ||
                 directive.text == "maxnctapersm" || directive.text == "maxclusterrank") {
        if (!extents(directive, shape)) return false;
      } else if (directive.text == "noreturn") {
        function.noreturn = true;
      } else if (directive.text == "explicitcluster" || directive.text == "unified" ||
                 directive.text == "abi_preserve" || directive.text == "blocksareclusters") {
      } else if (directive.text == "pragma") {
        if (!cursor_.skip_to_semicolon()) return false;
      } else {
        return cursor_.fail_at(directive, "unknown function directive");
      }
    }
    if (!cursor_.accept(';')) {
      if (!braces(&function.body_text, &function.body_line)) return false;
      if (function.body_text.empty()) function.body_text = " ";
    }
    module_.functions.push_back(std::move(function));
    return true;
  }

  // Skips a text in braces; `inside` becomes what is between them.
  bool braces(std::string_view* inside, uint32_t* line) {
    if (!cursor_.peek().is('{')) return cursor_.fail("expected '{'");
    const char* begin = cursor_.peek().text.data() + 1;
    *line = cursor_.peek().line;
    uint64_t depth = 0;
    do {
      const Token& token = cursor_.peek();
      if (token.kind == TokenKind::End || token.kind == TokenKind::Malformed)
        return cursor_.fail("expected '}'");
      if (token.is('{')) ++depth;
      if (token.is('}')) --depth;
      if (depth == 0) *inside = {begin, static_cast<size_t>(token.text.data() - begin)};
      cursor_.take();
    } while (depth > 0);
    return true;
  }

  std::string_view text_;
  Cursor cursor_;
  Module module_;
};

}  // namespace

Result<Module> parse_module(std::string_view text) { return ModuleReader(text).read(); }

}  // namespace kiln::ptx
