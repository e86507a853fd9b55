// SPDX-License-Identifier: Apache-2.0
// Which names and versions may a package have?
#include "project/package_name.h"

#include <algorithm>
#include <vector>

#include "base/text.h"

namespace kiln::project {

namespace {

// Modules of Python's own library: PyPI keeps their names.
constexpr std::string_view kStandardModules =
    "abc aifc antigravity argparse array ast asynchat asyncio asyncore atexit audioop base64 bdb "
    "binascii bisect builtins bz2 cprofile calendar cgi cgitb chunk cmath cmd code codecs codeop "
    "collections colorsys compileall concurrent configparser contextlib contextvars copy copyreg "
    "crypt "
    "csv ctypes curses dataclasses datetime dbm decimal difflib dis distutils doctest email "
    "encodings "
    "ensurepip enum errno faulthandler fcntl filecmp fileinput fnmatch fractions ftplib functools "
    "gc "
    "genericpath getopt getpass gettext glob graphlib grp gzip hashlib heapq hmac html http "
    "idlelib "
    "imaplib imghdr imp importlib inspect io ipaddress itertools json keyword lib2to3 linecache "
    "locale "
    "logging lzma mailbox mailcap marshal math mimetypes mmap modulefinder msilib msvcrt "
    "multiprocessing "
    "netrc nis nntplib nt ntpath nturl2path numbers opcode operator optparse os ossaudiodev "
    "pathlib pdb "
    "pickle pickletools pipes pkgutil platform plistlib poplib posix posixpath pprint profile "
    "pstats pty "
    "pwd py_compile pyclbr pydoc pydoc_data pyexpat queue quopri random re readline reprlib "
    "resource "
    "rlcompleter runpy sched secrets select selectors shelve shlex shutil signal site smtpd "
    "smtplib "
    "sndhdr socket socketserver spwd sqlite3 sre_compile sre_constants sre_parse ssl stat "
    "statistics "
    "string stringprep struct subprocess sunau symtable sys sysconfig syslog tabnanny tarfile "
    "telnetlib "
    "tempfile termios textwrap this threading time timeit tkinter token tokenize tomllib trace "
    "traceback "
    "tracemalloc tty turtle turtledemo types typing unicodedata unittest urllib uu uuid venv "
    "warnings "
    "wave weakref webbrowser winreg winsound wsgiref xdrlib xml xmlrpc zipapp zipfile zipimport "
    "zlib "
    "zoneinfo";

// Importable by everybody who would install the package.
constexpr std::string_view kTakenModules = "kiln torch numpy pip setuptools nvidia triton";

bool has_word(std::string_view words, std::string_view wanted) {
  std::vector<std::string_view> all = text::split_any(words, " ");
  return std::find(all.begin(), all.end(), wanted) != all.end();
}

}  // namespace

std::string package_file_name(std::string_view name) {
  std::string out;
  for (char c : text::lower(name)) {
    bool separator = c == '-' || c == '_' || c == '.';
    if (separator && out.ends_with('_')) continue;
    out += separator ? '_' : c;
  }
  return out;
}

std::string name_taken(const std::string& name) {
  const std::string plain = package_file_name(name);
  if (has_word(kStandardModules, plain)) return "it is a module of Python's standard library";
  if (has_word(kTakenModules, plain)) return "it belongs to a package that is widely installed";
  return "";
}

std::string name_refused(const std::string& name) {
  auto is_plain = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  bool formed = !name.empty() && is_plain(name.front()) && is_plain(name.back()) &&
                std::all_of(name.begin(), name.end(), [&](char c) {
                  return is_plain(c) || c == '.' || c == '-' || c == '_';
                });
  if (!formed)
    return "a name consists of letters, digits, '-', '_' and '.', and starts and ends with a "
           "letter or digit";
  std::string plain = package_file_name(name);
  if (std::string why = name_taken(name); !why.empty()) return why;
  if (plain == "requirements_txt" || plain == "rrequirements_txt")
    return "it is reserved: people mistype pip install -r";
  return "";
}

// [N!]N(.N)*[{a|b|rc}N][.postN][.devN][+local]
bool is_version(std::string_view text) {
  auto digits = [&] {
    size_t count = 0;
    while (count < text.size() && text[count] >= '0' && text[count] <= '9') ++count;
    text.remove_prefix(count);
    return count > 0;
  };
  auto word = [&](std::string_view wanted) {
    if (!text.starts_with(wanted)) return false;
    text.remove_prefix(wanted.size());
    return true;
  };
  if (!digits()) return false;
  if (word("!") && !digits()) return false;
  while (text.size() > 1 && text[0] == '.' && text[1] >= '0' && text[1] <= '9') {
    text.remove_prefix(1);
    digits();
  }
  if ((word("a") || word("b") || word("rc")) && !digits()) return false;
  if (word(".post") && !digits()) return false;
  if (word(".dev") && !digits()) return false;
  if (!word("+")) return text.empty();
  for (std::string_view part : text::split(text, '.'))
    if (part.empty() || part.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789") != part.npos)
      return false;
  return true;
}

}  // namespace kiln::project
