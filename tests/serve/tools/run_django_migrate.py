"""Django: `migrate` of its own applications, and users, groups and rights by contrib.auth."""

import io
import json
import sys

import django
from django.conf import settings
from django.core.management import call_command

host, port = sys.argv[1:]
settings.configure(
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "HOST": host, "PORT": port, "USER": "noonmark", "NAME": "noonmark",
        }
    },
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes"],
    PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    SECRET_KEY="tests",
    USE_TZ=True,
)  # fmt: skip
django.setup()

from django.contrib.auth.models import Group, Permission, User  # noqa: E402 - needs the settings
from django.db import IntegrityError, transaction  # noqa: E402 - likewise

told: dict[str, object] = {}
said = io.StringIO()
call_command("migrate", stdout=said)
told["migrate"] = said.getvalue()
again = io.StringIO()
call_command("migrate", stdout=again)
told["again"] = again.getvalue()
ada = User.objects.create_user("ada", "ada@example.com", "secret")
told["ada"] = [ada.id, ada.check_password("secret")]
clerks = Group.objects.create(name="clerks")
clerks.permissions.add(*Permission.objects.order_by("id")[:5])
ada.groups.add(clerks)
told["rights"] = sorted(User.objects.get(username="ada").get_all_permissions())
try:
    with transaction.atomic():
        User.objects.create_user("ada")
except IntegrityError as error:
    told["twice"] = str(error)
with transaction.atomic():
    (locked,) = User.objects.select_for_update().filter(username="ada")
    locked.first_name = "Ada"
    locked.save()
told["name"] = User.objects.get(pk=ada.pk).get_full_name()
call_command("createsuperuser", username="root", email="r@example.com", interactive=False)
told["deleted"] = User.objects.filter(username="ada").delete()
told["left"] = list(User.objects.values_list("username", "is_superuser"))
print(json.dumps(told))
