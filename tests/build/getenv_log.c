// SPDX-License-Identifier: Apache-2.0
// Which environment variables does a program ask for? Preloaded into it, this writes "program<TAB>name" for each.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

extern char** environ;

static char* value_of(const char* name) {
  size_t length = strlen(name);
  for (char** at = environ; at && *at; ++at)
    if (strncmp(*at, name, length) == 0 && (*at)[length] == '=') return *at + length + 1;
  return NULL;
}

static void note(const char* name) {
  const char* file = value_of("GETENV_LOG");
  if (!file) return;
  const int error = errno;
  char line[512];
  int length = (int)readlink("/proc/self/exe", line, 300);
  if (length > 0 && strlen(name) < 200) {
    line[length++] = '\t';
    memcpy(line + length, name, strlen(name));
    length += (int)strlen(name);
    line[length++] = '\n';
    int log = open(file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (log >= 0) {
      if (write(log, line, (size_t)length) < 0) errno = error;
      close(log);
    }
  }
  errno = error;
}

char* getenv(const char* name) {
  note(name);
  return value_of(name);
}
char* secure_getenv(const char* name) { return getenv(name); }
char* __secure_getenv(const char* name) { return getenv(name); }
