// Compiles a plain loop once per vector width; the program chooses one when it starts. Additions
// and multiplications round the same in each (the build forbids contraction), so results do not
// depend on the machine. Sanitizers cannot run before that choice and get the plain version.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define FEDSMOOTH_VECTOR_CLONES \
  __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define FEDSMOOTH_VECTOR_CLONES
#endif
