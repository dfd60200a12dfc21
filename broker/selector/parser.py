"""From the words of a selector to its tree, by recursive descent.

    or         := and { OR and }
    and        := equality { AND equality }
    equality   := comparison { ("=" | "<>") comparison | IS [NOT] NULL }
    comparison := add { (">" | ">=" | "<" | "<=") add | [NOT] LIKE string [ESCAPE string]
                        | [NOT] BETWEEN add AND add | [NOT] IN "(" string { "," string } ")" }
    add        := mult { ("+" | "-") mult }
    mult       := unary { ("*" | "/" | "%") unary }
    unary      := ("+" | "-" | NOT) unary | (XPATH | XQUERY) string | primary
    primary    := literal | identifier | "(" or ")"

NOT binds closest: `NOT a = 1` compares (NOT a) with 1, as in Artemis's grammar. What nests
deeper than DEPTH_MAX is refused: the text is a client's, and the parser and what it compiles to go
down by recursion.
"""

from __future__ import annotations

from typing import Final

from broker.model.properties import PropertyType
from broker.selector.lexer import END, SelectorError, Token, tokens
from broker.selector.tree import (
    And,
    Arithmetic,
    BooleanCast,
    Compare,
    Identifier,
    In,
    IsNull,
    Like,
    Literal,
    Negate,
    Node,
    Not,
    Or,
    XPath,
    XQuery,
    is_boolean,
)
from broker.selector.values import BIG, INT_MAX, INT_MIN, LONG_MAX

__all__ = ["DEPTH_MAX", "parse_tree"]

# Eight frames of Python a level, of the thousand there are.
DEPTH_MAX: Final = 64
# Operands in one chain of operators of the same rank: each is a level of what it compiles to.
CHAIN_MAX: Final = 256
# A double has no more; Python itself stops at 4,300.
DIGITS_MAX: Final = 308

_ORDERS: Final = (">", ">=", "<", "<=")


def parse_tree(text: str, *, start: int = 0, hyphenated: bool = False) -> Node:
    """The tree of a selector, a condition.

    Args:
        text: the whole selector.
        start: index to begin at, behind the prefixes.
        hyphenated: names may have `-` in them.

    Raises:
        SelectorError: the text is not a selector.
    """
    return _Parser(tokens(text, start=start, hyphenated=hyphenated)).selector()


class _Parser:
    def __init__(self, words: list[Token]) -> None:
        self.words = words
        self.at = 0
        self.depth = 0

    @property
    def next(self) -> Token:
        return self.words[self.at]

    def take(self, *kinds: str) -> Token | None:
        """The next word if it is one of these."""
        word = self.words[self.at]
        if word.kind not in kinds:
            return None
        self.at += 1
        return word

    def expect(self, *kinds: str) -> Token:
        word = self.take(*kinds)
        if word is None:
            raise self.unexpected(" or ".join(kinds))
        return word

    def unexpected(self, wanted: str) -> SelectorError:
        word = self.next
        shown = "the end" if word.kind == END else repr(word.text)
        return SelectorError(f"{shown} where {wanted} is expected", word.position)

    def follows(self, *kinds: str) -> bool:
        """Whether these are the next words."""
        following = self.words[self.at : self.at + len(kinds)]
        return tuple(word.kind for word in following) == kinds

    def selector(self) -> Node:
        node = self.any_of()
        if self.next.kind != END:
            raise self.unexpected("an operator or the end")
        return self.condition(node, 0)

    def condition(self, node: Node, at: int) -> Node:
        if isinstance(node, Identifier):
            return BooleanCast(node)
        if not is_boolean(node):
            raise SelectorError("a condition is expected, not a value", self.words[at].position)
        return node

    def any_of(self) -> Node:
        at = self.at
        nodes = [self.all_of()]
        places = [at]
        while self.take("OR"):
            places.append(self.at)
            nodes.append(self.all_of())
        if len(nodes) == 1:
            return nodes[0]
        return Or(tuple(map(self.condition, nodes, places)))

    def all_of(self) -> Node:
        at = self.at
        nodes = [self.equality()]
        places = [at]
        while self.take("AND"):
            places.append(self.at)
            nodes.append(self.equality())
        if len(nodes) == 1:
            return nodes[0]
        return And(tuple(map(self.condition, nodes, places)))

    def equality(self) -> Node:
        left = self.comparison()
        for _ in range(CHAIN_MAX):
            if word := self.take("=", "<>"):
                right = self.comparison()
                _check_equal(left, right, word.position)
                equal = Compare("=", left, right)
                left = equal if word.kind == "=" else Not(equal)
            elif self.take("IS"):
                negated = self.take("NOT") is not None
                self.expect("NULL")
                left = Not(IsNull(left)) if negated else IsNull(left)
            else:
                return left
        raise self.too_deep()

    def comparison(self) -> Node:
        left = self.add()
        for _ in range(CHAIN_MAX):
            if word := self.take(*_ORDERS):
                left = _order(word.kind, left, self.add(), word.position)
                continue
            negated = any(self.follows("NOT", kind) for kind in ("LIKE", "BETWEEN", "IN"))
            if negated:
                self.expect("NOT")
            if self.take("LIKE"):
                left = self.like(left, negated=negated)
            elif word := self.take("BETWEEN"):
                left = self.between(left, word.position, negated=negated)
            elif word := self.take("IN"):
                left = self.contained(left, word.position, negated=negated)
            else:
                return left
        raise self.too_deep()

    def like(self, left: Node, *, negated: bool) -> Node:
        pattern = self.string()
        escape = ""
        if self.take("ESCAPE"):
            at = self.next.position
            escape = self.string()
            if len(escape) != 1:
                raise SelectorError("ESCAPE takes one character", at)
        like = Like(left, pattern, escape)
        return Not(like) if negated else like

    def between(self, left: Node, position: int, *, negated: bool) -> Node:
        low = self.add()
        self.expect("AND")
        high = self.add()
        if negated:
            orders = (_order("<", left, low, position), _order(">", left, high, position))
            return Or(orders)
        return And((_order(">=", left, low, position), _order("<=", left, high, position)))

    def contained(self, left: Node, position: int, *, negated: bool) -> Node:
        self.expect("(")
        texts = {self.string()}
        while self.take(","):
            texts.add(self.string())
        self.expect(")")
        if not isinstance(left, Identifier):
            raise SelectorError("IN takes a name on its left", position)
        return In(left, frozenset(texts), negated)

    def add(self) -> Node:
        left = self.multiply()
        for _ in range(CHAIN_MAX):
            word = self.take("+", "-")
            if word is None:
                return left
            left = Arithmetic(word.kind, left, self.multiply())
        raise self.too_deep()

    def multiply(self) -> Node:
        left = self.unary()
        for _ in range(CHAIN_MAX):
            word = self.take("*", "/", "%")
            if word is None:
                return left
            left = Arithmetic(word.kind, left, self.unary())
        raise self.too_deep()

    def unary(self) -> Node:
        word = self.take("+", "-", "NOT", "XPATH", "XQUERY")
        if word is None:
            return self.primary()
        if word.kind == "XPATH":
            return XPath(self.string())
        if word.kind == "XQUERY":
            return XQuery(self.string())
        self.deeper()
        at = self.at
        operand = self.unary()
        self.depth -= 1
        if word.kind == "NOT":
            return Not(self.condition(operand, at))
        return Negate(operand) if word.kind == "-" else operand

    def primary(self) -> Node:
        word = self.next
        if self.take("("):
            self.deeper()
            node = self.any_of()
            self.depth -= 1
            self.expect(")")
            return node
        self.at += 1
        match word.kind:
            case "word":
                return Identifier(word.text)
            case "quoted":
                return Identifier(word.text[1:-1].replace('""', '"'))
            case "string":
                return Literal((PropertyType.STRING, _unquoted(word)))
            case "TRUE" | "FALSE":
                return Literal((PropertyType.BOOLEAN, word.kind == "TRUE"))
            case "NULL":
                return Literal(None)
            case "float":
                return Literal((PropertyType.DOUBLE, float(word.text)))
            case "decimal" | "hex" | "octal":
                return _whole(word)
        self.at -= 1
        raise self.unexpected("a value")

    def string(self) -> str:
        return _unquoted(self.expect("string"))

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > DEPTH_MAX:
            raise self.too_deep()

    def too_deep(self) -> SelectorError:
        return SelectorError("it nests too deep", self.next.position)


def _unquoted(word: Token) -> str:
    return word.text[1:-1].replace("''", "'")


def _whole(word: Token) -> Literal:
    if word.kind == "decimal":
        if len(word.text) > DIGITS_MAX:
            raise SelectorError(f"a number of more than {DIGITS_MAX} digits", word.position)
        value = int(word.text.rstrip("lL"))
    else:
        value = int(word.text, 16) if word.kind == "hex" else int(word.text, 8)
    if INT_MIN <= value <= INT_MAX:
        return Literal((PropertyType.INT, value))
    if value <= LONG_MAX:
        return Literal((PropertyType.LONG, value))
    if word.kind == "decimal":
        return Literal((BIG, value))
    raise SelectorError(f"{word.text} is more than 64 bits", word.position)


def _order(sign: str, left: Node, right: Node, position: int) -> Compare:
    for operand in (left, right):
        is_text = isinstance(operand, Literal) and isinstance(
            operand.value and operand.value[1], str
        )
        if is_text or is_boolean(operand):
            raise SelectorError(
                "only numbers have an order; this is a text or a condition", position
            )
    return Compare(sign, left, right)


def _check_equal(left: Node, right: Node, position: int) -> None:
    for operand in (left, right):
        if isinstance(operand, Literal) and operand.value is None:
            raise SelectorError("nothing equals NULL; write IS NULL", position)
    if (
        isinstance(left, Literal)
        and isinstance(right, Literal)
        and is_boolean(left)
        and not is_boolean(right)
    ):
        raise SelectorError("a boolean is compared with another constant", position)
