// What differs between operating systems: how a library is opened, a lock, whole pages of memory.
#ifndef VKSPLAT_VKX_OS_H
#define VKSPLAT_VKX_OS_H
#include <stddef.h>
#include <stdio.h>

#ifdef _WIN32
#include <windows.h>

typedef SRWLOCK vkx_lock;
static inline void lock_make(vkx_lock *l) { InitializeSRWLock(l); }
static inline void lock_take(vkx_lock *l) { AcquireSRWLockExclusive(l); }
static inline void lock_give(vkx_lock *l) { ReleaseSRWLockExclusive(l); }
static inline void lock_free(vkx_lock *l) { (void)l; }

// library_symbol opens a library, whose path is UTF-8, and returns what name is in it.
static inline void *library_symbol(const char *path, const char *name, char *why, size_t why_size) {
    wchar_t wide[1024];
    HMODULE lib = NULL;
    if (MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, wide, 1024) > 0)
        lib = LoadLibraryW(wide);
    union { FARPROC f; void *p; } u = {lib ? GetProcAddress(lib, name) : NULL};
    if (!u.f) {
        char text[256];
        DWORD code = GetLastError();
        DWORD n = FormatMessageA(FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS, NULL, code,
                                 MAKELANGID(LANG_ENGLISH, SUBLANG_ENGLISH_US), text, sizeof text, NULL);
        while (n > 0 && (unsigned char)text[n - 1] <= ' ') n--;
        snprintf(why, why_size, "%s: %.*s (error %lu)", path, (int)n, text, (unsigned long)code);
    }
    return u.p;
}

// host_take returns size bytes of zeros in whole pages, or NULL. What VirtualAlloc gives begins at a multiple of 64 KiB, the most that align can be.
static inline void *host_take(size_t size, size_t align) {
    (void)align;
    return VirtualAlloc(NULL, size, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
}
static inline void host_give(void *p, size_t size) {
    (void)size;
    VirtualFree(p, 0, MEM_RELEASE);
}
#else
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>

typedef pthread_mutex_t vkx_lock;
static inline void lock_make(vkx_lock *l) { pthread_mutex_init(l, NULL); }
static inline void lock_take(vkx_lock *l) { pthread_mutex_lock(l); }
static inline void lock_give(vkx_lock *l) { pthread_mutex_unlock(l); }
static inline void lock_free(vkx_lock *l) { pthread_mutex_destroy(l); }

// library_symbol opens a library and returns what name is in it.
static inline void *library_symbol(const char *path, const char *name, char *why, size_t why_size) {
    void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *p = lib ? dlsym(lib, name) : NULL;
    if (!p) {
        const char *e = dlerror();
        snprintf(why, why_size, "%s", e ? e : "no such symbol in it");
    }
    return p;
}

// host_take returns size bytes of zeros in whole pages that begin at a multiple of align, or NULL. Both are multiples of the size of a page.
static inline void *host_take(size_t size, size_t align) {
    if (size > SIZE_MAX - align) return NULL;
    char *p = mmap(NULL, size + align, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return NULL;
    size_t before = (align - (uintptr_t)p % align) % align;
    if (before > 0) munmap(p, before);
    munmap(p + before + size, align - before);
    return p + before;
}
static inline void host_give(void *p, size_t size) { munmap(p, size); }
#endif
#endif
