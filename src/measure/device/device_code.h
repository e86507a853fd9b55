// SPDX-License-Identifier: Apache-2.0
// Which kernels does the timing core itself run? PTX text for the driver to compile, so that
// neither nvcc nor a fat binary is needed. It is nvcc's, for device_code.cu, with the version
// lowered to what drivers have known since 2020.
#pragma once

namespace kiln::measure {

inline constexpr const char* kDeviceCode = R"ptx(.version 7.0
.target sm_70
.address_size 64
.visible .entry kiln_spin(
 .param .u32 kiln_spin_param_0,
 .param .u64 kiln_spin_param_1
)
{
 .reg .pred %p<3>;
 .reg .f32 %f<7>;
 .reg .b32 %r<7>;
 .reg .b64 %rd<15>;
 ld.param.u32 %r3, [kiln_spin_param_0];
 ld.param.u64 %rd5, [kiln_spin_param_1];
 mov.u64 %rd6, %globaltimer;
 mov.u64 %rd7, %clock64;
 setp.eq.s32 %p1, %r3, 0;
 mov.u64 %rd14, 1065353216;
 @%p1 bra $L__BB0_4;
 mov.f32 %f6, 0f3F800000;
 mov.u32 %r6, 0;
$L__BB0_2:
 .pragma "nounroll";
 fma.rn.f32 %f6, %f6, 0f3F7FFFFF, 0f33800000;
 add.s32 %r6, %r6, 1;
 setp.lt.u32 %p2, %r6, %r3;
 @%p2 bra $L__BB0_2;
 mov.b32 %r5, %f6;
 cvt.u64.u32 %rd14, %r5;
$L__BB0_4:
 cvta.to.global.u64 %rd11, %rd5;
 mov.u64 %rd9, %clock64;
 mov.u64 %rd10, %globaltimer;
 sub.s64 %rd12, %rd9, %rd7;
 st.global.u64 [%rd11], %rd12;
 sub.s64 %rd13, %rd10, %rd6;
 st.global.u64 [%rd11+8], %rd13;
 st.global.u64 [%rd11+16], %rd14;
 ret;
}
.visible .entry kiln_copy(
 .param .u64 kiln_copy_param_0,
 .param .u64 kiln_copy_param_1,
 .param .u64 kiln_copy_param_2
)
{
 .reg .pred %p<4>;
 .reg .b32 %r<43>;
 .reg .b64 %rd<25>;
 ld.param.u64 %rd13, [kiln_copy_param_0];
 ld.param.u64 %rd14, [kiln_copy_param_1];
 ld.param.u64 %rd12, [kiln_copy_param_2];
 cvta.to.global.u64 %rd1, %rd14;
 cvta.to.global.u64 %rd2, %rd13;
 mov.u32 %r1, %ctaid.x;
 mul.wide.u32 %rd15, %r1, 1024;
 mov.u32 %r2, %tid.x;
 cvt.u64.u32 %rd16, %r2;
 add.s64 %rd24, %rd15, %rd16;
 add.s64 %rd17, %rd24, 768;
 setp.lt.u64 %p1, %rd17, %rd12;
 @%p1 bra $L__BB1_4;
 bra.uni $L__BB1_1;
$L__BB1_4:
 shl.b64 %rd19, %rd24, 4;
 add.s64 %rd20, %rd2, %rd19;
 ld.global.v4.u32 {%r11, %r12, %r13, %r14}, [%rd20+4096];
 ld.global.v4.u32 {%r19, %r20, %r21, %r22}, [%rd20+8192];
 ld.global.v4.u32 {%r27, %r28, %r29, %r30}, [%rd20+12288];
 add.s64 %rd21, %rd1, %rd19;
 ld.global.v4.u32 {%r35, %r36, %r37, %r38}, [%rd20];
 st.global.v4.u32 [%rd21], {%r35, %r36, %r37, %r38};
 st.global.v4.u32 [%rd21+4096], {%r11, %r12, %r13, %r14};
 st.global.v4.u32 [%rd21+8192], {%r19, %r20, %r21, %r22};
 st.global.v4.u32 [%rd21+12288], {%r27, %r28, %r29, %r30};
 bra.uni $L__BB1_5;
$L__BB1_1:
 setp.ge.u64 %p2, %rd24, %rd12;
 @%p2 bra $L__BB1_5;
 shl.b64 %rd18, %rd24, 4;
 add.s64 %rd23, %rd2, %rd18;
 add.s64 %rd22, %rd1, %rd18;
$L__BB1_3:
 ld.global.v4.u32 {%r3, %r4, %r5, %r6}, [%rd23];
 st.global.v4.u32 [%rd22], {%r3, %r4, %r5, %r6};
 add.s64 %rd23, %rd23, 4096;
 add.s64 %rd22, %rd22, 4096;
 add.s64 %rd24, %rd24, 256;
 setp.lt.u64 %p3, %rd24, %rd12;
 @%p3 bra $L__BB1_3;
$L__BB1_5:
 ret;
}
.visible .entry kiln_fill(
 .param .u64 kiln_fill_param_0,
 .param .u64 kiln_fill_param_1,
 .param .u32 kiln_fill_param_2,
 .param .u32 kiln_fill_param_3
)
{
 .reg .pred %p<2>;
 .reg .b32 %r<46>;
 .reg .b64 %rd<9>;
 ld.param.u64 %rd2, [kiln_fill_param_0];
 ld.param.u64 %rd3, [kiln_fill_param_1];
 ld.param.u32 %r1, [kiln_fill_param_2];
 ld.param.u32 %r2, [kiln_fill_param_3];
 mov.u32 %r3, %ctaid.x;
 mul.wide.u32 %rd4, %r3, 256;
 mov.u32 %r4, %tid.x;
 cvt.u64.u32 %rd5, %r4;
 add.s64 %rd1, %rd4, %rd5;
 setp.ge.u64 %p1, %rd1, %rd3;
 @%p1 bra $L__BB2_2;
 cvta.to.global.u64 %rd6, %rd2;
 cvt.u32.u64 %r5, %rd1;
 mad.lo.s32 %r6, %r5, 2027808484, %r1;
 shr.u32 %r7, %r6, 16;
 xor.b32 %r8, %r7, %r6;
 mul.lo.s32 %r9, %r8, -2048144789;
 shr.u32 %r10, %r9, 13;
 xor.b32 %r11, %r10, %r9;
 mul.lo.s32 %r12, %r11, -1028477387;
 shr.u32 %r13, %r12, 16;
 xor.b32 %r14, %r13, %r12;
 add.s32 %r15, %r6, -1640531527;
 shr.u32 %r16, %r15, 16;
 xor.b32 %r17, %r16, %r15;
 mul.lo.s32 %r18, %r17, -2048144789;
 shr.u32 %r19, %r18, 13;
 xor.b32 %r20, %r19, %r18;
 mul.lo.s32 %r21, %r20, -1028477387;
 shr.u32 %r22, %r21, 16;
 xor.b32 %r23, %r22, %r21;
 add.s32 %r24, %r6, 1013904242;
 shr.u32 %r25, %r24, 16;
 xor.b32 %r26, %r25, %r24;
 mul.lo.s32 %r27, %r26, -2048144789;
 shr.u32 %r28, %r27, 13;
 xor.b32 %r29, %r28, %r27;
 mul.lo.s32 %r30, %r29, -1028477387;
 shr.u32 %r31, %r30, 16;
 xor.b32 %r32, %r31, %r30;
 add.s32 %r33, %r6, -626627285;
 shr.u32 %r34, %r33, 16;
 xor.b32 %r35, %r34, %r33;
 mul.lo.s32 %r36, %r35, -2048144789;
 shr.u32 %r37, %r36, 13;
 xor.b32 %r38, %r37, %r36;
 mul.lo.s32 %r39, %r38, -1028477387;
 shr.u32 %r40, %r39, 16;
 xor.b32 %r41, %r40, %r39;
 shl.b64 %rd7, %rd1, 4;
 add.s64 %rd8, %rd6, %rd7;
 and.b32 %r42, %r14, %r2;
 and.b32 %r43, %r41, %r2;
 and.b32 %r44, %r32, %r2;
 and.b32 %r45, %r23, %r2;
 st.global.v4.u32 [%rd8], {%r42, %r45, %r44, %r43};
$L__BB2_2:
 ret;
}
)ptx";

}  // namespace kiln::measure
