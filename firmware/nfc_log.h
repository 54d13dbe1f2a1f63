/* SPDX-License-Identifier: MIT */
/*
 * nfc_logf: nfc_log() with a format, for device programs. It needs no library,
 * so that it works on a card as in a hosted device. A line has at most 255
 * bytes; what is longer is cut off.
 *
 *	nfc_logf(self, "took %u bytes in %llu ns", n, nfc_now(self) - since);
 *
 * Conversions are %d %i %u %x %p %c %s and %%, with the flag 0, a width, and the
 * sizes l, ll and z. Anything else is written as it stands.
 */
#ifndef NFC_LOG_H
#define NFC_LOG_H

#include <stdarg.h>

#include "nfc_fw.h"

/* A line that is being made. */
struct nfc_line_text {
	uint32_t length;
	char text[256];
};

static inline void nfc_put_char(struct nfc_line_text *l, char c)
{
	if (l->length < sizeof(l->text) - 1)
		l->text[l->length++] = c;
}

static inline void nfc_put_text(struct nfc_line_text *l, const char *s)
{
	while (*s)
		nfc_put_char(l, *s++);
}

/* A number with at least width characters, its sign among them. */
static inline void nfc_put_number(struct nfc_line_text *l, uint64_t n,
				  uint32_t base, int negative, int width,
				  char fill)
{
	char digit[24];
	int count = 0;

	do {
		digit[count++] = "0123456789abcdef"[n % base];
		n /= base;
	} while (n);
	if (negative && fill == '0')
		nfc_put_char(l, '-');
	for (int i = count + negative; i < width; i++)
		nfc_put_char(l, fill);
	if (negative && fill != '0')
		nfc_put_char(l, '-');
	while (count)
		nfc_put_char(l, digit[--count]);
}

/* The part of a conversion between % and its letter. */
struct nfc_conversion {
	int width;
	int wide; /* 64 bits */
	char fill;
};

static inline const char *nfc_read_conversion(const char *f,
					      struct nfc_conversion *c)
{
	*c = (struct nfc_conversion){ .fill = *f == '0' ? '0' : ' ' };
	for (; *f >= '0' && *f <= '9' && c->width < 256; f++)
		c->width = c->width * 10 + (*f - '0');
	for (; *f == 'l' || *f == 'z'; f++)
		c->wide = sizeof(long) == 8 || (f[0] == 'l' && f[1] == 'l') ||
			  c->wide;
	return f;
}

static inline void nfc_vlogf(struct nfc_process *self, const char *f,
			     va_list args)
{
	struct nfc_line_text l = { 0 };
	struct nfc_conversion c;

	for (; *f; f++) {
		const char *start = f;
		int64_t n;

		if (*f != '%') {
			nfc_put_char(&l, *f);
			continue;
		}
		f = nfc_read_conversion(f + 1, &c);
		switch (*f) {
		case 'd':
		case 'i':
			n = c.wide ? va_arg(args, int64_t) : va_arg(args, int);
			nfc_put_number(&l, n < 0 ? -(uint64_t)n : (uint64_t)n,
				       10, n < 0, c.width, c.fill);
			break;
		case 'u':
		case 'x':
			nfc_put_number(&l,
				       c.wide ? va_arg(args, uint64_t) :
						va_arg(args, uint32_t),
				       *f == 'u' ? 10 : 16, 0, c.width, c.fill);
			break;
		case 'p':
			nfc_put_text(&l, "0x");
			nfc_put_number(&l, (uintptr_t)va_arg(args, void *), 16,
				       0, 0, ' ');
			break;
		case 'c':
			nfc_put_char(&l, (char)va_arg(args, int));
			break;
		case 's':
			nfc_put_text(&l, va_arg(args, const char *));
			break;
		case '%':
			nfc_put_char(&l, '%');
			break;
		default: /* no conversion: as it stands */
			for (; start <= f && *start; start++)
				nfc_put_char(&l, *start);
			f -= !*f;
		}
	}
	nfc_log(self, l.text);
}

/* One line to the device's log, which the host's Options.Logger gets. */
static inline __attribute__((format(printf, 2, 3))) void
nfc_logf(struct nfc_process *self, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	nfc_vlogf(self, format, args);
	va_end(args);
}

#endif /* NFC_LOG_H */
