/* SPDX-License-Identifier: ISC */
/* Gives memory back that only the start, or a handshake, needed. */
#pragma once

/* Trims the heap, and takes the pages of code and constants of the program and of every library out
 * of this process: what is used again comes back from the page cache by itself (some 0.1 ms in
 * all). What was ever written stays. Breakpoints that a debugger has set are lost. Cannot fail. */
void shed(void);
