/* SPDX-License-Identifier: ISC */
/*
 * The whole of one layer, linked with what lies left of it and nothing else: a call to a layer on
 * its right is an undefined symbol here. That it links is the test.
 */
int main(void)
{
	return 0;
}
