import functools


def is_fine(answer):
    return Right().judge(answer)


class Right:
    def judge(self, answer):
        if not answer:
            raise AssertionError("it is not fine")


def traced(function):
    @functools.wraps(function)
    def call(*arguments, **named):
        return function(*arguments, **named)

    return call
