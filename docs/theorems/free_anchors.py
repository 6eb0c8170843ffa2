# %% [markdown]
# # Beyond the paper: free anchors, solved values
#
# **The paper:** has evenly spaced anchors; this goes beyond it. **Call:** `ah.head(function, on=(a, b), within=e)`.
#
# ## Statement
# Evenly spaced anchors that hold values of the function reach an error of about $1/p$ with $p$ anchors. Anchors that
# may stand anywhere, with values that are solved for, do better: *for every function $f$ that is analytic around
# $[a, b]$ there are $C$ and $\rho > 1$ such that for every $p$ some head with $p$ anchors is within $C \rho^{-p}$ of
# $f$ on $[a, b]$.* And a ReLU, which is not analytic, takes three anchors for any error.
#
# ## Weights
# A head is $r(s) = \sum_k v_k\,\mathrm{softmax}_k(\alpha_k s + \gamma_k)$. It is linear in the values $v$: given the
# keys, values are a least squares problem. The keys are $2p - 2$ numbers (what all logits share does not count), found
# by variable projection: Gauss–Newton steps on the keys, with the values eliminated, from several starts, and then
# sharpened towards the largest error.

# %%
import numpy as np

import anchorhead as ah

for anchors in range(3, 11):
    head = ah.head("gelu", on=(-10, 10), anchors=anchors)
    print(f"{anchors:3} anchors: proven {head.certificate.bound:.2e}")
head = ah.head("gelu", on=(-10, 10), within=1e-6)
for slope, offset, value in zip(head.parts[0].slopes, head.parts[0].offsets, head.parts[0].values[:, 0], strict=True):
    print(f"slope {slope:+.6f}  offset {offset:+.6f}  value {value:+.6f}")

# %% [markdown]
# ## Proof of the rate
# Take slopes $\alpha_k = h k$ and offsets $\gamma_k = \ln \binom{p-1}{k}$, $k = 0 \dots p - 1$, for any $h > 0$. With
# $y = e^{h s}$ and $x = \sigma(h s) = y/(1 + y)$,
#
# $$\mathrm{softmax}_k = \frac{\binom{p-1}{k} y^k}{(1 + y)^{p-1}} = \binom{p-1}{k} x^k (1 - x)^{p-1-k}.$$
#
# These are the Bernstein polynomials, a basis of all polynomials of degree $p - 1$. So by its values the head is *any*
# polynomial of degree $p - 1$ in $x = \sigma(h s)$. The function $F(x) = f(\frac1h \ln\,\frac{x}{1-x})$ is analytic
# around $[\sigma(h a), \sigma(h b)]$, which lies in the open interval $(0, 1)$, so it is analytic and bounded, by $M$
# say, on some Bernstein ellipse of parameter $\rho > 1$ around it, and by step 1 of Lemma 1 below its Chebyshev series
# cut off at degree $p - 1$ errs by at most $\sum_{k \ge p} 2 M \rho^{-k} = 2 M \rho^{1-p}/(\rho - 1)$. ∎
#
# Solved keys do better still, and choose values that float64 can add up without loss.
#
# ## Proof of a certificate
# The difference $g = f - r$ of function and head is bounded as one analytic function, on pieces between the kinks of
# $f$.
#
# **A head has no pole near the real axis.** If $|\mathrm{Im}\,s| < \pi/(\alpha_{\max} - \alpha_{\min})$, then,
# multiplied by $e^{-i \bar\alpha\,\mathrm{Im}\,s}$ with $\bar\alpha = (\alpha_{\max} + \alpha_{\min})/2$, all terms of
# the denominator $\sum_k e^{\alpha_k s + \gamma_k}$ have arguments between $-\pi/2$ and $\pi/2$ and so positive real
# parts. Their sum is not 0.
#
# **Lemma 1.** *Let $g$ be real on $[a, b]$ and analytic on the closed Bernstein ellipse with parameter $\rho > 1$ (foci
# $a$ and $b$, half axes $\frac12 (\rho \pm 1/\rho)$ times $(b - a)/2$), with $|g| \le M$ there. Let $y_j$ be within $e$
# of $g$ at the $n + 1$ Chebyshev points $x_j = \cos(j \pi/n)$ (mapped to $[a, b]$), $\hat q$ the polynomial of degree
# $n$ through the $y_j$, and $K > 1$ a whole number. Then on $[a, b]$*
#
# $$\sup |g| \le \frac{\max_i |\hat q(\cos t_i)|}{\cos(\pi/(2K))} + 2 n e + \frac{4 M \rho^{-n}}{\rho - 1}, \qquad t_i = \frac{i \pi}{K n}, \; i = 0, \dots, K n.$$
#
# Proof. Map $[a, b]$ to $[-1, 1]$.
#
# 1. *Chebyshev coefficients.* With $x = (z + 1/z)/2$ the function $G(z) = g((z + 1/z)/2)$ is analytic on
#    $1/\rho \le |z| \le \rho$ and $G(z) = G(1/z)$, so its Laurent series is symmetric and $g = \sum_k a_k T_k$ with
#    $a_k = \frac{1}{\pi i} \oint_{|z| = \rho} G(z)\,z^{-k-1} dz$ for $k \ge 1$: the mean of $2 G(z) z^{-k}$, hence
#    $|a_k| \le 2 M \rho^{-k}$.
# 2. *Interpolation.* At the points $\cos(j\pi/n)$ every $T_k$ with $k > n$ agrees with some $T_i$, $i \le n$, because
#    $\cos(k j \pi/n)$ depends on $k$ modulo $2n$, up to sign of $k$. So the polynomial $q$ of degree $n$ through the
#    exact values is $\sum_{k \le n} a_k T_k + \sum_{k > n} a_k T_{i(k)}$, and
#    $|g - q| \le 2 \sum_{k > n} |a_k| \le 4 M \rho^{-n}/(\rho - 1)$.
# 3. *Values that are off.* $\hat q = \sum_j y_j B_j$ and $q = \sum_j g(x_j) B_j$ with
#    $B_j(\cos t) = \frac2n h_j \sum_k h_k \cos(k j \pi/n) \cos(k t)$, $h = \frac12$ at the ends and 1 between. Since
#    $\sum_k h_k = n$, $|B_j| \le 2 h_j$, and $\sum_j |B_j| \le 2n$: $|\hat q - q| \le 2 n e$.
# 4. *From points to the interval* (Ehlich and Zeller). Let $P = \sup |\hat q|$ be attained at $\cos t_0$, and
#    $\hat q(\cos t_0) = P$ (else take $-\hat q$). By Lemma 2, $\hat q(\cos t) \ge P \cos(n (t - t_0))$ for
#    $|t - t_0| \le \pi/n$. Some $t_i$ is within $\pi/(2 K n)$ of $t_0$, so
#    $\max_i |\hat q(\cos t_i)| \ge P \cos(\pi/(2K))$. ∎
#
# **Lemma 2** (M. Riesz). *Let $T$ be a trigonometric polynomial of degree $n$ with $|T| \le P$ and $T(t_0) = P$. Then
# $T(t) \ge P \cos(n (t - t_0))$ for $|t - t_0| \le \pi/n$.*
#
# Proof. Suppose not: $d(t) = P \cos(n (t - t_0)) - T(t)$ is positive at some $t_1$, say in $(t_0, t_0 + \pi/n)$. Count
# zeros of $d$ in one period, with multiplicity. At $t_0$ both terms have their maximum, so $d$ has a double zero. At
# $\tau_j = t_0 + j \pi/n$ the cosine is $(-1)^j$, so $d(\tau_j) \ge 0$ for even $j$ and $\le 0$ for odd $j$. There is a
# zero between $t_1$ and $\tau_1$, and one in each of the intervals $[\tau_j, \tau_{j+1}]$, $j = 1, \dots, 2n - 2$;
# where a zero falls on a common end $\tau_j$, $|T| = P$ is extremal there, the zero is double, and serves both. That
# makes $2 + 1 + (2n - 2) = 2n + 1$ zeros, but a trigonometric polynomial of degree $n$ that is not 0 has at most $2n$.
# So $d = 0$ everywhere, against $d(t_1) > 0$. ∎
#
# **As a computation.** $M$ is found by covering the whole ellipse (not its boundary alone: so a pole inside cannot
# hide) with rectangles and enclosing $g$ on each in complex balls; values $y_j$ come from balls, so $e$ is as small as
# one likes. A cell is done when the bound is within two per cent of the largest value found, else it is halved; towards
# kinks and steep places that happens by itself. So a few dozen evaluations bound the error at every point.
# [Rounding](rounding.md) is bounded on cells.

# %%
print(head.certificate)
ah.plot(head, "gelu.png")

# %% [markdown]
# ![GELU as eight anchors](gelu.png)
#
# ## A ReLU is three anchors
# Slopes $-A, -h, h$, offsets $\ln 2, 0, 0$, values $0, -1/h, 1/h$, with $A > h > 0$:
#
# $$r(s) = \frac{\sinh(h s)/h}{e^{-A s} + \cosh(h s)}.$$
#
# The two small slopes make the line, the steep one switches it off. **Proposition 3.** *For $|s| \le 1$ the error is at
# most $0.2785/(A - h) + h^2/3$.*
#
# Proof. Let $T = \tanh(h s)/h$; then $r = T/(1 + e^{-A s}/\cosh(h s))$, and $|T - s| \le h^2 |s|^3/3$, because
# $|\tanh x - x| \le |x|^3/3$. For $s \ge 0$: $0 \le T \le s$, so $r \le s$, and
# $s - r \le (s - T) + T\,\frac{e^{-As}}{\cosh(hs) + e^{-A s}} \le h^2/3 + \frac{s}{1 + e^{A s}}$. For $s < 0$:
# $\cosh(h s) \le e^{h |s|}$, so $|r| \le \frac{|s|}{1 + e^{(A - h) |s|}}$. And $x/(1 + e^x) \le 0.2785$ for $x \ge 0$
# (its maximum is at $x = 1.2785$), so $\frac{s}{1 + e^{A s}} \le 0.2785/A$. ∎
#
# $A$ may be huge, and $h$ is chosen where $h^2/3$ meets the rounding of values of size $1/h$:

# %%
A, h = 1e9, 1e-4
s = np.concatenate([-np.logspace(-12, 0, 4001), np.logspace(-12, 0, 4001)])
r = np.sinh(h * s) / h / (np.exp(np.minimum(-A * s, 700)) + np.cosh(h * s))
print(f"largest error {np.abs(r - np.maximum(s, 0)).max():.2e}, Proposition 3: {0.2785 / (A - h) + h**2 / 3:.2e}")
print(ah.head("relu", on=(-1, 1), within=1e-9).certificate)
