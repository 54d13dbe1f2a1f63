#!/usr/bin/env perl
# Converts Go programs from the API of pkg/nfcomms before its first release to that of v0.1.0.
#
#	scripts/from-prerelease.pl FILE.go...    rewrites the files; run gofmt, and build, afterwards
#
# The changes are those of CHANGELOG.md, "From a checkout before v0.1.0". What cannot be
# converted line by line is printed with its place.
use strict;
use warnings;

my $nf = '"github.com/nfcomms/nfcomms/pkg/nfcomms';
my ($p, $expr); # balanced parentheses; the expression that a method is called on
$p = qr/\((?:[^()]++|(??{$p}))*+\)/;
$expr = qr/[\w.]+(?:\[[^\[\]]*\])?(?:\.\w+)*/;

# args(TEXT): the arguments in parentheses, apart.
sub args {
	my ($text) = @_;
	my ($depth, @list) = (0, '');
	for my $c (split //, substr $text, 1, -1) {
		$depth++ if $c =~ /[(\[{]/;
		$depth-- if $c =~ /[)\]}]/;
		if ($c eq ',' && !$depth) { push @list, ''; next }
		$list[-1] .= $c;
	}
	s/^\s+|\s+$//g for @list;
	return $list[0] eq '' && @list == 1 ? () : @list;
}

# typed(BEFORE, EXPR): whether an expression is a Chan, as far as the text before it says: by the
# line that declared it last.
sub typed {
	my ($before, $e) = @_;
	my $typed = $e =~ /ChanOf\[/;
	while ($before =~ /\b\Q$e\E(?:\s*:?=\s*(\S+)|(?:,\s*\w+)+\s*:?=\s*(\S+)|\s+\*?((?:nfcomms\.)?Chan\w*\b\[?))/g) {
		$typed = ($1 // $2 // $3) =~ /^(?:nfcomms\.)?Chan(?:Of)?\[/;
	}
	return $typed;
}

# form(BEFORE, EXPR, CASE, ARGS...): the case of an operation.
sub form {
	my ($before, $on, $case, @args) = @_;
	return "$on.$case(" . join(', ', @args) . ')' if $case !~ /Ind/ && typed($before, $on);
	return "nfcomms.$case(" . join(', ', $on, @args) . ')';
}

# convert(SOURCE): a file of today.
sub convert {
	my ($s) = @_;
	my $before = $s;
	my %case = (SendAsync => 'SendCase', ReceiveAsync => 'ReceiveCase', SendIndAsync => 'SendIndCase', ReceiveIndAsync => 'ReceiveIndCase');
	$s =~ s{($expr)\.(SendAsync|ReceiveAsync|SendIndAsync|ReceiveIndAsync)($p)}{
		my ($above, $on, $name, @args) = (substr($s, 0, $-[0]), $1, $2, args($3));
		my $ctx = shift @args;
		push @args, 'nil' if $name eq 'ReceiveAsync';
		form($above, $on, $case{$name}, @args) . ".Start($ctx)";
	}ge;
	$s =~ s{($expr)\.TrySend($p)}{ form(substr($s, 0, $-[0]), $1, 'SendCase', args($2)) . '.Try()' }ge;
	$s =~ s{($expr)\.Trace\(([^,()]+(?:\(\))?), nfcomms\.TraceOptions}{trace.Start($2, $1, trace.Options}g;
	$s =~ s{\bnfcomms\.TraceOptions\b}{trace.Options}g;
	$s =~ s{\bnfcomms\.(Tracer|LayerTimes|Layer|Waterfall|Times|Span)\b}{trace.$1}g;
	$s =~ s{\bnfcomms\.Trace\b}{trace.Result}g;
	$s =~ s{\bnfcomms\.LayerCount\b}{trace.Layers}g;
	$s =~ s{\bnfcomms\.Layer(\w+)}{trace.$1}g;
	$s =~ s{\bnfcomms\.TracersMost\b}{trace.MaxTracers}g;
	$s =~ s{\bnfcomms\.Trace(Every|Keep)Most\b}{trace.Max$1}g;
	if ($s =~ /\bnfcomms\./ && $s !~ /Boards?\./) {
		$s =~ s{($expr)\.(Peek|Poke)\((?=[^()]*(?:$p[^()]*)?, )}{admin.$2($1, }g;
		$s =~ s{($expr)\.Interrupts\((?=[^)])}{admin.Interrupts($1, }g;
	}
	$s =~ s{($expr)\.WaitInterrupt\(([^,()]+(?:\(\))?), }{admin.WaitInterrupt($2, $1, }g if $s !~ /Boards?\./;
	$s =~ s{nfcomms\.OpenWith\(([^,]+), ([^,]+), nfcomms\.Options\{Logger: (.*)\}\)}{nfcomms.Open($1, $2, nfcomms.WithLogger($3))}g;
	if ($s =~ /\bctx\b/ && $s =~ /\.Fabric\(\)/) {
		$s =~ s{\b(?=\w*[fF](?:abric)?(?:\(\))?\.)($expr(?:\(\))?\.)(State|Route|CutLink|KillNode|SilenceNode)\((?!ctx\b|context\.|\w+\.Context\()(\)?)}{"$1$2(ctx" . ($3 || ', ')}ge;
	}
	$s =~ s{($expr)\.Node($p)}{
		my ($dev, $all, @args) = ($1, $2, args($2));
		@args == 4 ? "fabric.Device($args[0], $dev, fabric.At(" . join(', ', @args[1 .. 3]) . '))' : "$dev.Node$all";
	}ge;
	$s =~ s{\bnfcomms\.At($p)}{ my @args = args($1); 'fabric.Target(fabric.At(' . join(', ', @args[0 .. 2]) . "), $args[3])" }ge;
	$s =~ s{\bnfcomms\.Place\(}{fabric.At(}g;
	$s =~ s{\bnfcomms\.Fabric(Place|State|Hop|Window)\b}{fabric.$1}g;
	$s =~ s{\bnfcomms\.(Fabric|HostWindow|LinkTest)\b}{fabric.$1}g;
	$s =~ s{\bnfcomms\.WindowAccess\b}{fabric.Access}g;
	$s =~ s{\bnfcomms\.Window(Read|Write)\b}{fabric.$1}g;
	if ($s =~ /\bnfcomms\./) {
		$s =~ s{($expr)\.Fabric\(\)}{fabric.Of($1)}g;
		$s =~ s{($expr)\.(Programs|Running|Memory)\((?=ctx\b|\w+\.Context\(\))(?!$p\))}{"admin." . ($2 eq 'Memory' ? 'MemoryOf' : $2) . "($1#"}ge;
		$s =~ s{($expr)#((?:ctx\b|\w+\.Context\(\)))}{$2, $1}g;
		$s =~ s{($expr)\.(Channels|Halves)\(\)}{admin.$2($1)}g;
	}
	$s =~ s{\bnfcomms\.(?:Open|Listen|Dial|Name)Option\b}{nfcomms.Option}g;
	$s =~ s{\bnfcomms\.(Log|Telemetry|Time|CLS|CTM|IMEM|EMEM|Devices|Found|Memory)\b}{admin.$1}g;
	$s =~ s{nfcomms\.OpenWith\(([^,]+), ([^,]+), nfcomms\.Options\{\}\)}{nfcomms.Open($1, $2)}g;
	for my $sub (qw(trace admin fabric)) {
		my ($then, $now) = map { scalar(() = /(?<!\.)\b$sub\.[A-Z]/g) } $before, $s;
		next if $s =~ m{pkg/nfcomms/$sub"} || $now <= $then;
		$s =~ s{\t$nf"\n}{\t$nf"\n\t$nf/$sub"\n};
	}
	$s =~ s{\t$nf"\n}{} if $s !~ /\bnfcomms\.\w/ && $before =~ /\bnfcomms\.\w/;
	return $s;
}

my $wrong = 0;
for my $file (@ARGV) {
	open my $in, '<', $file or die "$file: $!\n";
	my $before = do { local $/; <$in> };
	next if $before !~ /\Q$nf\E"/;
	my $s = convert($before);
	my $line = 0;
	for (split /\n/, $s) {
		$line++;
		next unless /\.TryReceive\(|\bOpenWith\(|nfcomms\.Options\b|nfcomms\.(?:Board|Half)\b|nfcomms\/(?:pkg\/fabric|spec\/search)"|\babi\.(?:Slot|Header|Area|Hello|Type|State|Control|Cap|List|Make(?:Header|Entry|Run|Tail))|\bgroup\.(?:Register|Exchanger|Step|Link|Frame)\b|nfcomms\.As(?:Receiver|Sender)\(|\bFutureOf\[|\bnfcomms\.Op(?!Error)[A-Z]/;
		print "$file:$line: by hand, see CHANGELOG.md: $_\n";
		$wrong = 1;
	}
	next if $s eq $before;
	open my $out, '>', $file or die "$file: $!\n";
	print $out $s;
	close $out or die "$file: $!\n";
}
exit $wrong;
