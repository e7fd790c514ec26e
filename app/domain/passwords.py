"""Password policy: one rule for pages, endpoints and the command line."""

from app.domain.texts import N_
from app.errors import InvalidInput

PASSWORD_MIN = 8
PASSWORD_MAX = 128
#: the passwords most often guessed that are long enough; case is ignored
_COMMON_TEXT = """
    12345678 123456789 1234567890 12345678910 0123456789 987654321 9876543210 87654321 11111111 111111111
    1111111111 00000000 000000000 0000000000 88888888 66666666 99999999 22222222 12341234 12344321 11223344
    1122334455 112233445566 123123123 12121212 123454321 147258369 123698745 789456123 159753456 147852369
    741852963 1234abcd 1234qwer 123qweasd 12345qwert 123456abc 1234567a 12345678a 123456789a 1234567890a
    123456qwerty 1q2w3e4r 1q2w3e4r5t 1q2w3e4r5t6y 1qaz2wsx 1qaz2wsx3edc 1qazxsw2 q1w2e3r4 q1w2e3r4t5
    zaq12wsx zaq1xsw2 qazwsxedc qazwsx123 qwertyui qwertyuiop qwerty12 qwerty123 qwerty1234 qwerty12345
    qwert12345 qwer1234 qweasdzxc qweqweqwe asdfghjk asdfghjkl asdf1234 asdfasdf asd123456 zxcvbnm123
    zxcvbnm1 zxc123456 abc12345 abc123456 abcd1234 abcd12345 abcdefgh abcdefg1 abcdefghi a1234567 a12345678
    a123456789 aa123456 aa12345678 aaaaaaaa aaa11111 q1234567 q123456789 z123456789 w123456789 password
    password1 password12 password123 password1234 passw0rd passw0rd1 p@ssw0rd p@ssword p@ssw0rd1 pa55word
    pass1234 pass12345 passpass passwort mypassword mypassword1 newpassword password! password1! password.
    passwords admin123 admin1234 admin12345 admin123456 admin@123 admin!@# administrator adminadmin admin888
    admin666 admin2020 admin2021 admin2022 admin2023 admin2024 admin2025 admin2026 root1234 root12345
    root123456 rootroot toor1234 test1234 test12345 test123456 testtest testing1 testing123 guest123
    guest1234 user1234 user12345 default1 changeme changeme1 changeme123 changeit secret123 letmein1
    letmein123 welcome1 welcome12 welcome123 welcome1! iloveyou iloveyou1 iloveyou2 sunshine sunshine1
    princess princess1 football football1 baseball baseball1 basketball superman superman1 batman123
    trustno1 whatever whatever1 starwars starwars1 computer computer1 internet internet1 michelle jennifer
    jessica1 charlie1 michael1 jordan23 liverpool liverpool1 chelsea1 arsenal1 manchester barcelona samantha
    victoria elizabeth alexander alexandra christian christopher benjamin nicholas danielle dragon12
    dragon123 monkey123 shadow123 master123 mustang1 corvette midnight butterfly chocolate blink182 pokemon1
    pokemon123 naruto123 minecraft roblox123 fortnite counter1 nintendo playstation metallica slipknot1
    hello123 hello1234 hellohello 5201314520 1314520520 woaini123 woaini1314 woaini520 woaini521
    woaini5201314 520131400 zhang123 wang1234 aini1314 a5201314 qq123456 qq123123 taobao123 wobuzhidao
    123456aa 123456qq 123456ab 31415926 314159265 27182818 zhongguo china123 beijing1 beijing2008 xxl-job123
    xxljob123 xxljob123456 scheduler scheduler1 jobadmin1 jobadmin123 xxl-job-admin default_token
"""
COMMON = frozenset(_COMMON_TEXT.split())


def check_new_password(password: str, *, username: str, field: str = "password") -> None:
    """Raise InvalidInput for a password that is too short, too long or too common."""
    if not password.strip():
        raise InvalidInput(field, N_("Enter a password"))
    if not PASSWORD_MIN <= len(password) <= PASSWORD_MAX:
        raise InvalidInput(
            field,
            N_("The password must have %(low)s to %(high)s characters", low=PASSWORD_MIN, high=PASSWORD_MAX),
        )
    if _is_common(password.lower(), username.lower()):
        raise InvalidInput(field, N_("This is a common password; choose another"))


def _is_common(password: str, username: str) -> bool:
    if password in COMMON or len(set(password)) <= 2:
        return True
    steps = {ord(second) - ord(first) for first, second in zip(password, password[1:], strict=False)}
    if steps in ({1}, {-1}):
        return True
    return bool(username) and (username * (PASSWORD_MAX // len(username) + 1)).startswith(password)
