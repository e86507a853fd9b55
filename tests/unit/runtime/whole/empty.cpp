// SPDX-License-Identifier: Apache-2.0
// Nothing of its own: the library is the archive.
