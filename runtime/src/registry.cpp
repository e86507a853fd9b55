// SPDX-License-Identifier: Apache-2.0
// How do a C++ signature and the text of KILN_OP become a schema and the C ABI's description? The
// types of the text were compared with the signature while compiling (kiln/spec.h); here names,
// defaults and marks are read.
#include "registry.h"

#include <stdlib.h>
#include <string.h>

#include "call.h"

namespace kiln::detail {
namespace {

Registry& raw_registry() {
  static Registry* all = new Registry;  // never freed: torch may call while the process ends
  return *all;
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_word(char c) { return is_letter(c) || (c >= '0' && c <= '9'); }

// strtoll would be __isoc23_strtoll where glibc is 2.38 or newer, and tie the library to it.
int64_t read_integer(const char* text, char** rest) {
  const char* p = text;
  while (*p == ' ') p++;
  const bool negative = *p == '-';
  if (*p == '-' || *p == '+') p++;
  const char* digits = p;
  uint64_t value = 0;
  while (*p >= '0' && *p <= '9') value = 10 * value + static_cast<uint64_t>(*p++ - '0');
  *rest = const_cast<char*>(p == digits ? text : p);
  return static_cast<int64_t>(negative ? 0 - value : value);
}

char* copy(const char* begin, size_t size) {
  Text text;
  text.add(begin, size);
  return text.take();
}

// Reads one spec into an OpState.
class Describer {
 public:
  Describer(OpRecord* record, Text& fault)
      : record_(record), fault_(fault), p_(record->spec ? record->spec : "") {}

  bool describe() {
    read_name();
    const int n = record_->parameter_count;
    parameters_ =
        static_cast<KilnParameter*>(calloc(static_cast<size_t>(n) + 1, sizeof(KilnParameter)));
    schema_.add(name_);
    if (*overload_) schema_.add(".").add(overload_);
    schema_.add("(");
    if (!*p_ && n > 0 && !whole_) {
      made_up_names();
    } else if (!read_parameters()) {
      return false;
    }
    schema_.add(") -> ");
    add_results();
    finish();
    return true;
  }

 private:
  void skip() {
    while (*p_ == ' ' || *p_ == '\n' || *p_ == '\t') p_++;
  }

  void read_name() {
    skip();
    const char* q = p_;
    while (is_word(*q)) q++;
    const size_t size = static_cast<size_t>(q - p_);
    whole_ = size && (*q == '(' || *q == '.') && !(size == 6 && !strncmp(p_, "Tensor", 6));
    if (!whole_) {
      // "space::my_add" names the op my_add.
      const char* colon = strrchr(record_->function, ':');
      const char* plain = colon ? colon + 1 : record_->function;
      size_t end = 0;
      while (is_word(plain[end])) end++;
      name_ = copy(plain, end);
      return;
    }
    name_ = copy(p_, size);
    p_ = q;
    if (*p_ == '.') {
      const char* begin = ++p_;
      while (is_word(*p_)) p_++;
      overload_ = copy(begin, static_cast<size_t>(p_ - begin));
    }
    if (*p_ == '(') p_++;
  }

  void made_up_names() {
    for (int i = 0; i < record_->parameter_count; i++) {
      Text name;
      name.addf("arg%d", i);
      if (i) schema_.add(", ");
      add_type(schema_, record_->parameter_kinds[i]);
      schema_.add(" ").add(name.c_str());
      set_parameter(i, name.take(), 0);
    }
  }

  void set_parameter(int i, char* name, uint32_t flags) {
    const uint8_t kind = record_->parameter_kinds[i];
    KilnParameter& p = parameters_[i];
    p.name = name;
    p.type = kind & kBaseMask;
    p.flags = flags | static_cast<uint32_t>(((kind & kOptional) ? KILN_PARAMETER_OPTIONAL : 0) |
                                            ((kind & kMutable) ? KILN_PARAMETER_MUTABLE : 0));
  }

  // As PyTorch writes types. SymInt, so that torch.compile keeps an integer symbolic.
  void add_type(Text& to, uint8_t kind) {
    switch (kind & kBaseMask) {
      case kTensor:
        to.add("Tensor");
        break;
      case kInt:
        to.add("SymInt");
        break;
      case kFloat:
        to.add("float");
        break;
      case kBool:
        to.add("bool");
        break;
      case kStr:
        to.add("str");
        break;
      case kDtype:
        to.add("ScalarType");
        break;
      case kDevice:
        to.add("Device");
        break;
      case kTensorList:
        to.add("Tensor[]");
        break;
      case kIntList:
        to.add("SymInt[]");
        break;
      case kFloatList:
        to.add("float[]");
        break;
    }
    if (kind & kMutable) to.addf("(%c!)", 'a' + mutable_count_++);
    if (kind & kOptional) to.add("?");
  }

  bool read_parameters() {
    uint32_t keyword_only = 0;
    int i = 0;
    skip();
    while (*p_ && *p_ != ')') {
      if (i || keyword_only) schema_.add(", ");
      if (*p_ == '*') {
        p_++;
        keyword_only = KILN_PARAMETER_KEYWORD_ONLY;
        schema_.add("*");
      } else {
        if (i >= record_->parameter_count) return unreadable("more names than parameters");
        if (!read_parameter(i++, keyword_only)) return false;
      }
      skip();
      if (*p_ == ',') p_++;
      skip();
    }
    if (i != record_->parameter_count) return unreadable("fewer names than parameters");
    return true;
  }

  bool read_parameter(int i, uint32_t flags) {
    const char* begin = p_;
    while (is_word(*p_)) p_++;
    const char* end = p_;
    while (*p_ == '(' || *p_ == '[' || *p_ == '!' ||
           *p_ == '?') {  // the marks of a type; a name has none
      if (*p_ == '(')
        while (*p_ && *p_ != ')') p_++;
      if (*p_ == '[')
        while (*p_ && *p_ != ']') p_++;
      if (*p_) p_++;
      end = p_;
    }
    skip();
    if (is_letter(*p_)) {  // the word was a type: take the author's text for it
      if (record_->parameter_kinds[i] & kMutable)
        add_type(schema_, record_->parameter_kinds[i]);
      else
        schema_.add(begin, static_cast<size_t>(end - begin));
      begin = p_;
      while (is_word(*p_)) p_++;
      end = p_;
    } else {
      add_type(schema_, record_->parameter_kinds[i]);
    }
    schema_.add(" ").add(begin, static_cast<size_t>(end - begin));
    set_parameter(i, copy(begin, static_cast<size_t>(end - begin)), flags);
    skip();
    if (*p_ != '=') return true;
    p_++;
    skip();
    parameters_[i].flags |= KILN_PARAMETER_HAS_DEFAULT;
    return read_default(parameters_[i]);
  }

  bool read_default(KilnParameter& p) {
    const char* begin = p_;
    int depth = 0;
    char quote = 0;
    for (; *p_; p_++) {
      if (quote) {
        if (*p_ == quote) quote = 0;
      } else if (*p_ == '\'' || *p_ == '"') {
        quote = *p_;
      } else if (*p_ == '[' || *p_ == '(') {
        depth++;
      } else if ((*p_ == ']' || *p_ == ')') && depth > 0) {
        depth--;
      } else if (depth == 0 && (*p_ == ',' || *p_ == ')')) {
        break;
      }
    }
    const char* end = p_;
    while (end > begin && (end[-1] == ' ' || end[-1] == '\n')) end--;
    char* text = copy(begin, static_cast<size_t>(end - begin));
    const bool good = set_default(p, text);
    free(text);
    return good;
  }

  // The default is text of the author's source. It is parsed when the library is loaded, so that a
  // mistake is reported once and by name, and a call costs nothing for it.
  bool set_default(KilnParameter& p, const char* text) {
    KilnValue& v = p.default_value;
    schema_.add("=");
    if (!strcmp(text, "None") || !strcmp(text, "none")) {
      if (!(p.flags & KILN_PARAMETER_OPTIONAL))
        return unreadable("None as the default of a parameter that is not an Optional");
      schema_.add("None");
      return true;
    }
    v.type = p.type;
    char* rest = nullptr;
    switch (p.type) {
      case KILN_TYPE_INT:
      case KILN_TYPE_DTYPE:
        v.as.i = read_integer(text, &rest);
        if (!*text || *rest) return unreadable("a default that is not an integer");
        schema_.add(text);
        return true;
      case KILN_TYPE_FLOAT:
        v.as.f = read_real(text, &rest);
        if (!*text || *rest) return unreadable("a default that is not a number");
        schema_.add(text);
        if (!strpbrk(text, ".eEnN")) schema_.add(".0");
        return true;
      case KILN_TYPE_BOOL:
        v.as.i = !strcmp(text, "True") || !strcmp(text, "true");
        if (!v.as.i && strcmp(text, "False") && strcmp(text, "false"))
          return unreadable("a default that is neither True nor False");
        schema_.add(v.as.i ? "True" : "False");
        return true;
      case KILN_TYPE_STR: {
        const size_t size = strlen(text);
        if (size < 2 || (text[0] != '\'' && text[0] != '"') || text[size - 1] != text[0])
          return unreadable("a default that is not a quoted string");
        v.as.s = copy(text + 1, size - 2);
        v.count = static_cast<uint32_t>(size - 2);
        schema_.add("\"").add(v.as.s).add("\"");
        return true;
      }
      case KILN_TYPE_INT_LIST:
      case KILN_TYPE_FLOAT_LIST:
        return set_default_list(v, text);
      default:
        return unreadable("a default for a type that takes none (only None for an Optional)");
    }
  }

  bool set_default_list(KilnValue& v, const char* text) {
    if (text[0] != '[' || text[strlen(text) - 1] != ']')
      return unreadable("a default that is not a list");
    const bool ints = v.type == KILN_TYPE_INT_LIST;
    void* values = calloc(strlen(text) + 1, 8);
    const char* q = text + 1;
    while (*q && *q != ']') {
      char* rest = nullptr;
      if (ints)
        static_cast<int64_t*>(values)[v.count++] = read_integer(q, &rest);
      else
        static_cast<double*>(values)[v.count++] = read_real(q, &rest);
      if (rest == q) return unreadable("a default list with an item that is not a number");
      q = rest;
      while (*q == ' ' || *q == ',') q++;
    }
    if (ints)
      v.as.ints = static_cast<int64_t*>(values);
    else
      v.as.floats = static_cast<double*>(values);
    schema_.add(text);
    return true;
  }

  void add_results() {
    const int n = record_->result_count;
    results_ =
        static_cast<KilnParameter*>(calloc(static_cast<size_t>(n) + 1, sizeof(KilnParameter)));
    if (n != 1) schema_.add("(");
    for (int i = 0; i < n; i++) {
      if (i) schema_.add(", ");
      add_type(schema_, record_->result_kinds[i]);
      results_[i].name = "";
      results_[i].type = record_->result_kinds[i] & kBaseMask;
    }
    if (n != 1) schema_.add(")");
  }

  void finish() {
    auto* state = static_cast<OpState*>(calloc(1, sizeof(OpState)));
    for (int i = 0; i < record_->parameter_count; i++) {
      const uint32_t type = parameters_[i].type;
      state->has_tensor |= type == KILN_TYPE_TENSOR || type == KILN_TYPE_TENSOR_LIST;
      state->needs_torch_2_10 |= type == KILN_TYPE_STR || type >= KILN_TYPE_TENSOR_LIST;
    }
    for (int i = 0; i < record_->result_count; i++)
      state->needs_torch_2_10 |= results_[i].type >= KILN_TYPE_TENSOR_LIST;
    KilnOpInfo& info = state->info;
    info.name = name_;
    info.overload = overload_;
    info.schema = schema_.take();
    info.fake = record_->fake;
    info.doc = record_->doc;
    info.file = record_->file;
    info.line = record_->line;
    info.parameter_count = static_cast<uint32_t>(record_->parameter_count);
    info.parameters = parameters_;
    info.result_count = static_cast<uint32_t>(record_->result_count);
    info.results = results_;
    record_->state = state;
  }

  bool unreadable(const char* why) {
    Text where;
    where.addf("%s:%d", record_->file, record_->line);
    Text what;
    what.addf("cannot read KILN_OP(%s, \"%s\")", record_->function,
              record_->spec ? record_->spec : "");
    Text whole;
    whole.add(why).add(", at ").add(where.c_str());
    add_error(fault_, what.c_str(), whole.c_str(), "write \"a, b=1, *, c\" or a PyTorch schema");
    return false;
  }

  OpRecord* record_;
  Text& fault_;
  const char* p_;
  bool whole_ = false;
  const char* name_ = "";
  const char* overload_ = "";
  int mutable_count_ = 0;
  Text schema_;
  KilnParameter* parameters_ = nullptr;
  KilnParameter* results_ = nullptr;
};

// The namespace: KILN_NAMESPACE, or the stem of the file made an identifier.
const char* library_name(const OpRecord* record) {
  if (*record->library) return record->library;
  const char* slash = strrchr(record->file, '/');
  Text name;
  for (const char* p = slash ? slash + 1 : record->file; *p && *p != '.'; p++) {
    const char c = is_word(*p) ? *p : '_';
    if (!name.size() && !is_letter(c)) name.add("_");
    name.add(&c, 1);
  }
  return name.take();
}

void describe_all(Registry& all) {
  auto* infos = static_cast<KilnOpInfo*>(calloc(all.count + 1, sizeof(KilnOpInfo)));
  all.records = static_cast<OpRecord**>(calloc(all.count + 1, sizeof(OpRecord*)));
  uint32_t i = 0;
  for (OpRecord* record = all.first; record; record = record->next, i++) {
    if (!Describer(record, all.fault).describe()) {
      all.count = 0;
      break;
    }
    for (uint32_t k = 0; k < i; k++)
      if (!strcmp(infos[k].name, record->state->info.name) &&
          !strcmp(infos[k].overload, record->state->info.overload)) {
        Text what;
        what.addf("two ops are named %s%s%s", infos[k].name, *infos[k].overload ? "." : "",
                  infos[k].overload);
        Text why;
        why.addf("at %s:%d and %s:%d", infos[k].file, infos[k].line, record->file, record->line);
        add_error(all.fault, what.c_str(), why.c_str(),
                  "give one of them an overload name: KILN_OP(f, \"name.overload(a, b)\")");
        all.count = 0;
      }
    infos[i] = record->state->info;
    all.records[i] = record;
  }
  all.infos = infos;
  if (all.first) all.library = library_name(all.first);
}

}  // namespace

void register_op(OpRecord* record) {
  Registry& all = raw_registry();
  OpRecord** end = &all.first;
  while (*end) end = &(*end)->next;
  *end = record;
  all.count++;
}

Registry& registry() {
  Registry& all = raw_registry();
  if (!all.infos) describe_all(all);
  return all;
}

const char* parameter_name(const OpRecord* record, int index) {
  return record->state ? record->state->info.parameters[index].name : "";
}

}  // namespace kiln::detail
