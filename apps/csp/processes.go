package main

import (
	"context"
	"io"
	"slices"
)

// The processes of "Communicating Sequential Processes", by the numbers of its
// sections; device/csp.c has the text of the paper and the same for the device.

// Sizes of the paper.
const (
	cardSize, lineSize = 80, 125
	seats              = 5
)

type (
	card [cardSize]byte
	line [lineSize]byte
)

// squash is SQUASH (3.2): pairs of asterisks become an upward arrow.
func squash(ctx context.Context, west, east *channel[byte]) error {
	return west.Each(ctx, func(c byte) error {
		if c != '*' {
			return east.Send(ctx, c)
		}
		switch c, err := west.Receive(ctx); {
		case err == io.EOF:
			return east.Send(ctx, '*')
		case err != nil:
			return err
		case c == '*':
			return east.Send(ctx, '^')
		default:
			if err := east.Send(ctx, '*'); err != nil {
				return err
			}
			return east.Send(ctx, c)
		}
	})
}

// copies is COPY (3.1), for values of any type.
func copies[T any](ctx context.Context, west, east *channel[T]) error {
	return west.Each(ctx, func(c T) error { return east.Send(ctx, c) })
}

// disassemble is DISASSEMBLE (3.3): cards become a stream of characters.
func disassemble(ctx context.Context, cardfile *channel[card], x *channel[byte]) error {
	return cardfile.Each(ctx, func(image card) error {
		for _, c := range append(image[:], ' ') {
			if err := x.Send(ctx, c); err != nil {
				return err
			}
		}
		return nil
	})
}

// assemble is ASSEMBLE (3.4): a stream of characters becomes lines.
func assemble(ctx context.Context, x *channel[byte], lineprinter *channel[line]) error {
	var image line
	i := 0
	err := x.Each(ctx, func(c byte) error {
		image[i] = c
		if i++; i < lineSize {
			return nil
		}
		i = 0
		return lineprinter.Send(ctx, image)
	})
	if err != nil || i == 0 {
		return err
	}
	for ; i < lineSize; i++ {
		image[i] = ' '
	}
	return lineprinter.Send(ctx, image)
}

// sieve is SIEVE(i) (6.1): it prints the first number, a prime, and hands on what the
// prime does not divide.
func sieve(ctx context.Context, before, after, print *channel[uint64]) error {
	p, err := before.Receive(ctx)
	if err != nil {
		return none(err)
	}
	if err := print.Send(ctx, p); err != nil {
		return err
	}
	mp := p
	return before.Each(ctx, func(m uint64) error {
		for m > mp {
			mp += p
		}
		if m == mp {
			return nil
		}
		return after.Send(ctx, m)
	})
}

// none is nil where the end is no error.
func none(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}

// multiply is M(i, j) (6.2): a column of the matrix adds up from north to south what
// comes from the west.
func multiply(ctx context.Context, a int64, west, east, north, south *channel[int64]) error {
	return west.Each(ctx, func(x int64) error {
		if err := east.Send(ctx, x); err != nil {
			return err
		}
		sum, err := north.Receive(ctx)
		if err != nil {
			return none(err)
		}
		return south.Send(ctx, a*x+sum)
	})
}

// philosopher is PHIL(i) (5.3), so many times.
func philosopher(ctx context.Context, meals int, room, left, right, table *channel[byte]) error {
	for range meals {
		for _, c := range []*channel[byte]{room, left, right, table, table, left, right, room} {
			if err := c.Send(ctx, 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// fork is FORK(i) (5.3): who picked it up puts it down.
func fork(ctx context.Context, phil ...*channel[byte]) error {
	for len(phil) > 0 {
		i, _, err := alternative(ctx, phil...)
		if err == nil {
			_, err = phil[i].Receive(ctx)
		}
		switch {
		case err == io.EOF:
			phil = slices.Concat(phil[:i], phil[i+1:]) // that one has left
		case err != nil:
			return err
		}
	}
	return nil
}

// room is ROOM (5.3), with the guard that lets at most four in.
func room(ctx context.Context, phil ...*channel[byte]) error {
	var inside, outside []*channel[byte]
	for outside = phil; len(inside)+len(outside) > 0; {
		may := inside
		if len(inside) < seats-1 {
			may = slices.Concat(inside, outside)
		}
		i, _, err := alternative(ctx, may...)
		switch {
		case err != nil && err != io.EOF:
			return err
		case i < len(inside):
			if err == nil {
				outside = append(slices.Clone(outside), inside[i])
			}
			inside = slices.Concat(inside[:i], inside[i+1:])
		default:
			i -= len(inside)
			if err == nil {
				inside = append(slices.Clone(inside), outside[i])
			}
			outside = slices.Concat(outside[:i], outside[i+1:])
		}
	}
	return nil
}
