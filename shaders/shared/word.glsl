// The word of a chunk: a float, or in the variant for mixed precision the bits of whatever mixed.glsl says.
#ifndef WORD_GLSL
#define WORD_GLSL
#ifdef MIXED
#define WORD uint
#else
#define WORD float
#endif
#endif
