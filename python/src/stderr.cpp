// Debian's libpng.a and libjpeg.a are made for programs: they take stderr to be at a fixed distance
// from their code, which a module cannot promise. The linker (--wrap=stderr) lets them find this
// copy of it instead, which is in the module.
#include <cstdio>

extern "C" {
extern FILE* __real_stderr;
[[gnu::visibility("hidden")]] FILE* __wrap_stderr = nullptr;
}

[[gnu::constructor(101)]] static void copy_stderr() { __wrap_stderr = __real_stderr; }
