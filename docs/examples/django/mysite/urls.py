"""Pages of the site."""

from django.http import HttpRequest, HttpResponse
from django.urls import path


def index(request: HttpRequest) -> HttpResponse:
    """Page of the site."""
    return HttpResponse("the site")


urlpatterns = [path("", index)]
