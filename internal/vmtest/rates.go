//go:build linux

package main

import (
	"fmt"
	"strconv"
)

// rates are the messages a second, of the machine's clock, of the job rates: one now and then, some,
// and more than an emulated machine can send.
var rates = []int{1, 10_000, 1_000_000}

// moderations are cases of rates_test.c: who decides how far interrupts are apart.
var moderations = []string{"adaptive", "fixed", "none", "polled"}

func init() {
	j := job{
		name: "rates", group: "figures", about: "how many interrupts a message takes, by how many are sent in a second",
		kernel: "release", device: []string{}, params: loaded, aloud: true,
	}
	p := clientTest("rates").built("rates")
	for _, m := range moderations {
		for _, r := range rates {
			name := fmt.Sprintf("rates-%s-%d", m, r)
			p.args = []string{"-n", m, strconv.Itoa(r)}
			programs[name] = p
			j.programs = append(j.programs, name)
		}
	}
	jobs = append(jobs, j)
}
