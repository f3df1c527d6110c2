/*
 * fake_devrt.c: what stands for libcudadevrt.a: a library that has nothing.
 */
extern const int fake_devrt;
const int fake_devrt = 1;
